mod hostile;
mod memory;
mod messages;
mod passes;
mod round_trip;

use std::ops::ControlFlow;

use isolith_types::Metric;

use crate::records::{Batches, IntakeError, Layout, OnError, RecordBatch, Rules, validate};

fn rules(on_error: OnError) -> Rules {
    Rules { dimension: None, metric: Metric::Cosine, on_error }
}

fn check(content: &[u8], rules: &Rules) -> Result<Layout, IntakeError> {
    validate(content, rules, &mut |_, _| ControlFlow::Continue(()))
}

fn check_strictly(content: impl AsRef<[u8]>) -> Result<Layout, IntakeError> {
    check(content.as_ref(), &rules(OnError::Stop))
}

fn check_leniently(content: impl AsRef<[u8]>) -> Result<Layout, IntakeError> {
    check(content.as_ref(), &rules(OnError::Skip))
}

/// Reads all records as one batch.
fn all(content: &[u8], layout: &Layout) -> Result<RecordBatch, IntakeError> {
    let mut batches = Batches::open(content, layout.clone(), layout.start())?;
    let mut whole = batches.next(u64::MAX, usize::MAX)?.expect("the file has rows");
    assert_eq!(batches.next(1, 1)?, None);
    assert_eq!(batches.next(1, 1)?, None, "the end stays the end");
    whole.next = batches.cursor();
    Ok(whole)
}
