use super::*;

const SHORT: Duration = Duration::from_millis(1);

/// The result of an operation that succeeds at the `nth` try, and how often it was tried.
fn tried(policy: RetryPolicy, nth: u32, stop: impl FnMut() -> bool) -> (Result<u32, u32>, u32) {
    let mut tries = 0;
    let result = retry(policy, stop, || {
        tries += 1;
        if tries == nth { Ok(tries) } else { Err(tries) }
    });
    (result, tries)
}

#[test]
fn an_operation_is_tried_until_it_succeeds() {
    let patient = RetryPolicy::growing(SHORT, SHORT * 4);
    assert_eq!(tried(patient, 1, || panic!("nobody waits")), (Ok(1), 1));
    assert_eq!(tried(patient, 5, || false), (Ok(5), 5));
}

#[test]
fn the_last_error_is_returned_at_the_deadline_and_at_a_stop() {
    let (result, tries) = tried(RetryPolicy::every(SHORT, SHORT * 20), u32::MAX, || false);
    assert!(result == Err(tries) && tries > 1, "{result:?} after {tries}");
    let once = RetryPolicy::every(SHORT, Duration::ZERO);
    assert_eq!(tried(once, 2, || false), (Err(1), 1));
    let mut asked = 0;
    let patient = RetryPolicy::growing(SHORT, SHORT);
    let result = tried(patient, 9, || {
        asked += 1;
        asked > 3
    });
    assert!(matches!(result, (Err(last), tries) if last == tries && tries < 9), "{result:?}");
}
