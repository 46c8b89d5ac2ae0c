"""What kernels take in their forms: a table of whole numbers per runtime and device class"""
