use isolate::fuzzing::{receive, seal};

/// What starts an input of which only the payload is given: see [`wire`].
const SEALED: &[u8] = b"SEALED";

/// Frames between front and worker: a stream of them, or, after the bytes `SEALED`, one byte that
/// is odd for a payload in shared memory, two for the length of its slabs, and the payload of a
/// frame that gets the right checksums.
pub fn wire(data: &[u8]) -> bool {
    let (stream, area) = match data.strip_prefix(SEALED) {
        Some([place, low, high, payload @ ..]) => {
            let in_area = place % 2 == 1;
            let slabs_len = u16::from_le_bytes([*low, *high]).into();
            (seal(payload, slabs_len, in_area), payload)
        }
        _ => (data.to_vec(), &[][..]),
    };
    let read = |piece| receive(&stream, area, piece).expect("sockets and shared memory work here");
    let whole = read(4096);
    assert_eq!(read(61), whole, "pieces change what is received");
    whole.error.is_none()
        && !whole.is_torn
        && whole.frames.iter().any(|frame| frame.contains("Ok("))
}
