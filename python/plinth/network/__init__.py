"""The emulated network: network namespaces, the delay line between them, and how they are undone."""
