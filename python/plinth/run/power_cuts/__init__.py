"""Power cuts after the trials, and images of recorded disks."""
