//! A power of numbers with a fraction, which a template may ask for. All else that the program
//! needs of the C library's mathematics the compiler has itself, so this one function would make
//! the loader map a second library: a tenth of a stop's time, and half a megabyte of each process.

/// The C library's function of this name, in the place of which the linker takes it.
#[expect(unsafe_code, reason = "the linker finds it by its name")]
#[unsafe(no_mangle)]
extern "C" fn pow(base: f64, exponent: f64) -> f64 {
    libm::pow(base, exponent)
}
