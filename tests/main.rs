//! The one integration binary: it runs the built `crew` the way its users and their client do.
