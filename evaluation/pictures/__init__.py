"""What a report draws of two tables beside their scores, as JSON values. NOT private."""
