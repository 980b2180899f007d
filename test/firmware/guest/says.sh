# Tells the command line as the boot loader wrote it, and as Linux read it: arguments that mean nothing to Linux become
# variables of the first process, one for each.
echo "KERNEL-COMMAND-LINE $(cat /proc/cmdline)"
tr '\0' '\n' </proc/1/environ | sed 's/^/LINUX-READS /'
