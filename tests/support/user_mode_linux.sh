#!/bin/sh
# The first process of the tests' guest (user_mode_linux.py): gives it its own root, runs one command, switches off.
# The kernel's command line sets OUTSIDE, the one folder of the machine that can be written to, and SPACE_MB.
set -e
mount -t proc proc /proc
insmod "/usr/lib/uml/modules/$(uname -r)/kernel/fs/overlayfs/overlay.ko"
# The machine's files below, memory above: what is written inside stays inside.
mount -t tmpfs -o "size=${SPACE_MB}m,mode=755" memory /mnt
mkdir /mnt/upper /mnt/work /mnt/root
mount -t overlay -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work root /mnt/root
cd /mnt/root
mkdir -p lib/modules var/lib/plinth
ln -s "/usr/lib/uml/modules/$(uname -r)" lib/modules/
mount -t proc proc proc
mount -t sysfs sysfs sys
mount --bind /dev dev
mkdir -p dev/shm
for place in dev/shm run var/lib/plinth; do mount -t tmpfs -o mode=1777 tmpfs "$place"; done
mkdir run/lock run/outside
mount -t hostfs -o "$OUTSIDE" none run/outside
set +e
chroot . /run/outside/command
echo $? >run/outside/exit_code
umount run/outside
echo o >/proc/sysrq-trigger
sleep 60 # it goes off at once, but not within the very call
