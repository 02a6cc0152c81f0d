"""The verdict on privacy: do synthetic rows know the training rows better than a holdout?"""
