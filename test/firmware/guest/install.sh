# Run by init.sh for davit.check=install: the least that an installer does. It writes the image that davit serves over
# the machine's first disk, and reads it back.

image=$(argument install.image)
wget -q -O /tmp/image "$url$image" && dd if=/tmp/image of=/dev/vda 2>/dev/null && sync
head -c "$(stat -c %s /tmp/image)" /dev/vda | cmp - /tmp/image && echo "INSTALLED $image"
