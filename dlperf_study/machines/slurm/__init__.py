"""What the Slurm launcher consists of: the queue, the script, the submitted job and what runs in it."""
