"""What is known from operators about lengths, including those computed at run time."""
