"""Several web processes on one host, kept running by one that does nothing else."""
