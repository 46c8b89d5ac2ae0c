"""Reports as one HTML file that needs no network: graphs before and after, and what was done."""
