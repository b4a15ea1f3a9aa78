use isolate::fuzzing::{receive, seal};

/// Prefix of inputs that consist only of a payload: see [`wire`].
const SEALED: &[u8] = b"SEALED";

/// Frames between front and worker. The input is a stream of frames; or, after the bytes `SEALED`,
/// a byte (odd if the payload is in shared memory), the length of the slabs in two bytes, and the
/// payload of a frame, which gets correct checksums.
pub fn wire(data: &[u8]) -> bool {
    let (stream, area) = match data.strip_prefix(SEALED) {
        Some([flag, low, high, payload @ ..]) => {
            let in_area = flag % 2 == 1;
            let slabs_len = u16::from_le_bytes([*low, *high]).into();
            (seal(payload, slabs_len, in_area), payload)
        }
        _ => (data.to_vec(), &[][..]),
    };
    let read = |piece| receive(&stream, area, piece).expect("sockets and shared memory work");
    let whole = read(4096);
    assert_eq!(read(61), whole, "the result depends on the size of the pieces");
    whole.error.is_none()
        && !whole.is_torn
        && whole.frames.iter().any(|frame| frame.contains("Ok("))
}
