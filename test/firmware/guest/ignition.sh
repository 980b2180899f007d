# Run by init.sh for davit.check=ignition: Ignition itself, of Debian's package, provisions a root file system in
# memory, in the stages in which a real first boot runs it. Then all that is there is shown.

sysroot=/sysroot
ignition=/usr/lib/dracut/modules.d/30ignition/ignition

provision() {
  mkdir -p $sysroot /run
  mount -t tmpfs tmpfs $sysroot
  mount -t tmpfs tmpfs /run
  prepare_sysroot
  for stage in fetch disks mount files umount; do
    PATH=/usr/sbin:$PATH "$ignition" --platform metal --stage $stage --root $sysroot --neednet \
      --config-cache /run/ignition.json --log-to-stdout
    echo "IGNITION $stage ended with $?"
  done
  (cd $sysroot && find . ! -type d | sort) | while read -r path; do show "$path"; done
}

# What Ignition and useradd expect of any system.
prepare_sysroot() {
  mkdir -p $sysroot/etc/selinux $sysroot/home
  printf 'SELINUX=disabled\nSELINUXTYPE=none\n' >$sysroot/etc/selinux/config
  echo 'root:x:0:0:root:/root:/bin/sh' >$sysroot/etc/passwd
  echo 'root:x:0:' >$sysroot/etc/group
  echo 'root:*:19000:0:99999:7:::' >$sysroot/etc/shadow
  echo 'USERGROUPS_ENAB yes' >$sysroot/etc/login.defs
  # Debian's Ignition labels files for SELinux whatever the config says. There is none here, and nothing to label.
  printf '#!/bin/sh\nexec cat >/dev/null\n' >/bin/setfiles
  chmod +x /bin/setfiles
}

# Shows a file or link below the new root: mode, owner and content.
show() {
  path=${1#.}
  file=$sysroot$path
  echo "THERE $path $(stat -c '%a %u:%g' "$file")"
  echo "BEGIN $path"
  if [ -L "$file" ]; then readlink "$file"; else cat "$file"; fi
  echo
  echo "END $path"
}

provision
