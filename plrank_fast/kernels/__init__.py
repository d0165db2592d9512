"""Headers and sources of the SIMD kernels; installed so that other projects can compile against them."""
