use isolith_intake::transcript::{Batch, Format, Plan, Transcript, TranscriptError};

/// The formats that a file is read as; none is for what is recognized.
const FORMATS: [Option<Format>; 7] = [
    None,
    Some(Format::Drawers),
    Some(Format::Text),
    Some(Format::Markdown),
    Some(Format::Claude),
    Some(Format::Chatgpt),
    Some(Format::ClaudeCode),
];

/// Exports of conversations: however they are cut into batches, and wherever another process
/// goes on, the drawers are the same. Accepted is a file that is recognized and has no problems.
pub fn transcript(data: &[u8]) -> bool {
    let mut accepted = false;
    for format in FORMATS {
        let plan = Plan { name: "export".to_owned(), format, ..Plan::default() };
        let Ok(whole) = read(&plan, data, usize::MAX, false) else { continue };
        for resumes in [false, true] {
            let parts = read(&plan, data, 1, resumes).expect("it was read as a whole");
            assert_eq!(parts, whole, "batches change what is read: {format:?}");
        }
        let has_drawers = !whole.drawers.is_empty() && whole.problems.is_empty();
        accepted |= format.is_none() && has_drawers;
    }
    accepted
}

/// All that is in a file, in batches of a given size.
fn read(plan: &Plan, data: &[u8], rows: usize, resumes: bool) -> Result<Batch, TranscriptError> {
    let mut transcript = Transcript::open(data, plan.clone())?;
    let mut all = Batch::default();
    while let Some(batch) = transcript.next(rows, usize::MAX)? {
        all.drawers.extend(batch.drawers);
        all.rows.extend(batch.rows);
        all.problems.extend(batch.problems);
        all.skipped += batch.skipped;
        if resumes {
            let place = transcript.place().clone();
            transcript = Transcript::resume(data, plan.clone(), place)?;
        }
    }
    Ok(all)
}
