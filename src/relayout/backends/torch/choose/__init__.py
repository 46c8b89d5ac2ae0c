"""Which kernel each group of nodes gets, by times measured on the device."""
