//! Text of scalar values, which is the same in JSON and in keys, apart from quotes and a few values.

use std::net::Ipv6Addr;

use crate::hex::push_hex;
use crate::types::java_number::{push_decimal, push_double, push_single};
use crate::types::{CqlType, MarshalError, big_int, temporal, validate};

/// Appends a value that is not empty and has nothing to escape.
pub(super) fn push_scalar(
    cql_type: &CqlType,
    bytes: &[u8],
    out: &mut String,
) -> Result<(), MarshalError> {
    match cql_type {
        CqlType::Boolean => out.push_str(match leading(bytes)? {
            [0] => "false",
            _ => "true",
        }),
        CqlType::Byte => out.push_str(&i8::from_be_bytes(leading(bytes)?).to_string()),
        CqlType::Short => out.push_str(&i16::from_be_bytes(leading(bytes)?).to_string()),
        CqlType::Int32 => out.push_str(&i32::from_be_bytes(leading(bytes)?).to_string()),
        CqlType::Long | CqlType::CounterColumn => {
            out.push_str(&i64::from_be_bytes(leading(bytes)?).to_string());
        }
        CqlType::Float => push_single(f32::from_be_bytes(leading(bytes)?), out),
        CqlType::Double => push_double(f64::from_be_bytes(leading(bytes)?), out),
        CqlType::Integer => out.push_str(&big_int::to_decimal(bytes)?),
        CqlType::Decimal => push_decimal_value(bytes, out)?,
        CqlType::Timestamp | CqlType::LegacyDate => {
            temporal::push_timestamp(i64::from_be_bytes(leading(bytes)?), ' ', out);
        }
        CqlType::SimpleDate => temporal::push_simple_date(u32::from_be_bytes(leading(bytes)?), out),
        CqlType::Time => push_time_value(bytes, out)?,
        CqlType::Duration => {
            let (months, days, nanos) = validate::duration(bytes)?;
            temporal::push_duration(months, days, nanos, out);
        }
        CqlType::Inet => push_inet(bytes, out)?,
        _ => {
            let raw = leading(bytes)?;
            validate::timeuuid_version(cql_type, &raw)?;
            push_uuid(raw, out);
        }
    }
    Ok(())
}

/// Returns the first `N` bytes, as read by `ByteBuffer.getInt` and similar methods.
pub(super) fn leading<const N: usize>(bytes: &[u8]) -> Result<[u8; N], MarshalError> {
    match bytes.first_chunk::<N>() {
        Some(chunk) => Ok(*chunk),
        None => Err(MarshalError::length(&format!("{N} bytes"), bytes)),
    }
}

fn push_time_value(bytes: &[u8], out: &mut String) -> Result<(), MarshalError> {
    let nanos = i64::from_be_bytes(leading(bytes)?);
    temporal::push_time(nanos, out)
        .ok_or_else(|| MarshalError::new(format!("expected nanoseconds of one day, found {nanos}")))
}

fn push_decimal_value(bytes: &[u8], out: &mut String) -> Result<(), MarshalError> {
    match bytes.split_first_chunk::<4>() {
        Some((scale, unscaled)) if !unscaled.is_empty() => {
            push_decimal(i32::from_be_bytes(*scale), unscaled, out)
        }
        _ => Err(MarshalError::length("at least 5 bytes", bytes)),
    }
}

/// `java.util.UUID.toString`.
fn push_uuid(raw: [u8; 16], out: &mut String) {
    for (index, part) in [&raw[..4], &raw[4..6], &raw[6..8], &raw[8..10], &raw[10..]]
        .iter()
        .enumerate()
    {
        if index > 0 {
            out.push('-');
        }
        push_hex(part, out);
    }
}

/// `InetAddress.getHostAddress`: IPv6 is not shortened, and IPv4 mapped to IPv6 is printed as IPv4.
fn push_inet(bytes: &[u8], out: &mut String) -> Result<(), MarshalError> {
    let push_v4 = |[a, b, c, d]: [u8; 4], out: &mut String| {
        out.push_str(&format!("{a}.{b}.{c}.{d}"));
    };
    if let Ok(v4) = <[u8; 4]>::try_from(bytes) {
        push_v4(v4, out);
    } else if let Ok(raw) = <[u8; 16]>::try_from(bytes) {
        let v6 = Ipv6Addr::from(raw);
        match v6.to_ipv4_mapped() {
            Some(v4) => push_v4(v4.octets(), out),
            None => {
                let groups = v6.segments().map(|group| format!("{group:x}"));
                out.push_str(&groups.join(":"));
            }
        }
    } else {
        return Err(MarshalError::length("4 or 16 bytes", bytes));
    }
    Ok(())
}
