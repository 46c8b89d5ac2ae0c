"""What operators say about lengths, those computed at run time among them."""
