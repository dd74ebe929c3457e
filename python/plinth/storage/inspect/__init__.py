"""What is below a path, and what it reports: mounts, file systems, block devices, pools, drives."""
