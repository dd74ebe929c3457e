"""What storages are made of, and how it is read, made and taken away: block devices, arrays, pools, daemons, queues."""
