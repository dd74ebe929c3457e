"""What stands below a path, and what it says of itself: mounts, file systems, block devices, pools, drives."""
