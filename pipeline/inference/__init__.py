"""What a release tells about its own errors, and about the people, from noisy answers alone."""
