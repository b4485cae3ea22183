//! A power of numbers with a fraction, which a template may ask for. The compiler itself provides
//! every other mathematical function that the program needs, so this one would make the loader map
//! a second library: a tenth of a stop's time, and half a megabyte of each process.

/// The C library's function of this name, which the linker replaces with this one.
#[expect(unsafe_code, reason = "the linker finds it by its name")]
#[unsafe(no_mangle)]
extern "C" fn pow(base: f64, exponent: f64) -> f64 {
    libm::pow(base, exponent)
}
