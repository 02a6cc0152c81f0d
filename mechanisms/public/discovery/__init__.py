"""What a schema leaves to noisy answers (bounds, bins, values): public questions, and what follows from answers."""
