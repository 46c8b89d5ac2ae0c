"""Who can make a kernel for a group: libraries, Inductor, Triton, our C++ kernels."""
