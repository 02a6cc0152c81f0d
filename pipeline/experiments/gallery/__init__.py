"""What the sources print beside what we get: the numbers as data, all experiments in one command, and their pages."""
