use std::cmp::Ordering;

use compactor_sstable::types::{ClusteringOrder, CqlType, ValueOrder};
use proptest::prelude::*;

use crate::generate::{Random, SIMPLE, any_type, value, value_or_damage};

/// Each simple type, which `any_type` would generate too rarely.
fn each_type() -> impl Strategy<Value = CqlType> {
    prop_oneof![proptest::sample::select(&SIMPLE[..]), any_type()]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6000, ..ProptestConfig::default() })]

    /// A merge that meets a damaged value must still have a consistent order.
    #[test]
    fn compare_is_a_total_order(
        cql_type in each_type(),
        seeds in any::<[u64; 3]>(),
        damage in any::<[u64; 3]>(),
        alike in any::<bool>(),
    ) {
        let [a, b, c] = [0, 1, 2].map(|i| {
            value_or_damage(&cql_type, seeds[if alike { 0 } else { i }], damage[i])
        });
        prop_assert_eq!(cql_type.compare(&a, &a), Ordering::Equal);
        prop_assert_eq!(cql_type.compare(&a, &b), cql_type.compare(&b, &a).reverse());
        let mut sorted = [&a, &b, &c];
        sorted.sort_by(|x, y| cql_type.compare(x, y));
        prop_assert!(cql_type.compare(sorted[0], sorted[1]).is_le());
        prop_assert!(cql_type.compare(sorted[1], sorted[2]).is_le());
        prop_assert!(cql_type.compare(sorted[0], sorted[2]).is_le());
        // Equal values compare equally to all others.
        if cql_type.compare(&a, &b).is_eq() {
            prop_assert_eq!(cql_type.compare(&a, &c), cql_type.compare(&b, &c));
        }
    }

    #[test]
    fn precomputed_orders_agree(cql_type in each_type(), seeds in any::<[u64; 2]>()) {
        let [a, b] = seeds.map(|seed| value_or_damage(&cql_type, seed, seed));
        let order = cql_type.compare(&a, &b);
        prop_assert_eq!(ValueOrder::of(&cql_type).compare(&a, &b), order);
        prop_assert_eq!(ClusteringOrder::of(&cql_type).compare(&a, &b), order);
        let reversed = CqlType::Reversed(cql_type.into());
        prop_assert_eq!(reversed.compare(&a, &b), order.reverse());
        prop_assert_eq!(ClusteringOrder::of(&reversed).compare(&a, &b), order.reverse());
    }

    /// Also for similar values, and for those that no serializer would accept.
    #[test]
    fn prefixes_that_differ_are_in_order(
        cql_type in each_type(),
        reversed: bool,
        seeds in any::<[u64; 2]>(),
        damage in any::<[u64; 2]>(),
        alike: bool,
    ) {
        let cql_type = if reversed { CqlType::Reversed(cql_type.into()) } else { cql_type };
        let [a, b] = [0, 1].map(|i| {
            value_or_damage(&cql_type, seeds[if alike { 0 } else { i }], damage[i])
        });
        let order = ClusteringOrder::of(&cql_type);
        if let (Some(of_a), Some(of_b)) = (order.prefix(&a), order.prefix(&b)) && of_a != of_b {
            prop_assert_eq!(of_a.cmp(&of_b), cql_type.compare(&a, &b));
        }
    }

    #[test]
    fn strings_read_back(cql_type in each_type()) {
        let text = cql_type.class_string();
        prop_assert_eq!(CqlType::parse(&text).unwrap(), cql_type.clone());
        // Short names and additional blanks have the same meaning.
        let short = text
            .replace("org.apache.cassandra.db.marshal.", "")
            .replace(',', " ,\t")
            .replace(')', "\n)");
        prop_assert_eq!(CqlType::parse(&short).unwrap(), cql_type);
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "[a-zA-Z0-9(),:=> .+&_-]{0,40}|\\PC{0,20}") {
        let _ = CqlType::parse(&text);
        let _ = CqlType::parse(&format!("UserType(k,61,{text}"));
        let _ = CqlType::parse(&format!("VectorType(Int32Type{text}"));
        let _ = CqlType::parse(&format!("DynamicCompositeType({text}"));
    }

    /// The string of a type with one changed byte is another type or an error.
    #[test]
    fn damaged_strings_do_not_panic(cql_type in any_type(), seed in any::<u64>()) {
        let mut random = Random::new(seed);
        let mut text = cql_type.class_string();
        let at = random.below(text.len() as u64) as usize;
        text.replace_range(at..at + 1, ["", "(", ")", ",", "9", " "][random.below(6) as usize]);
        let _ = CqlType::parse(&text);
    }

    #[test]
    fn valid_values_validate_and_render(cql_type in each_type(), seed in any::<u64>()) {
        let bytes = value(&cql_type, &mut Random::new(seed));
        // An empty vector is the only value of a list of nothing that no serializer accepts.
        let vector_of_nothing = cql_type.class_string().contains("VectorType")
            && cql_type.class_string().contains("EmptyType");
        if !vector_of_nothing {
            prop_assert_eq!(cql_type.validate(&bytes), Ok(()));
            prop_assert!(cql_type.to_text(&bytes).is_ok());
        }
    }

    #[test]
    fn json_is_json(cql_type in each_type(), seed in any::<u64>()) {
        let bytes = value_or_damage(&cql_type, seed, seed);
        let _ = (cql_type.validate(&bytes), cql_type.to_text(&bytes), cql_type.describe(&bytes));
        let mut out = String::from("[");
        match cql_type.to_json(&bytes, &mut out) {
            Ok(()) => {
                out.push(']');
                let parsed = serde_json::from_str::<serde_json::Value>(&out);
                prop_assert!(is_json(&parsed), "{}: {:?}", out, parsed);
            }
            Err(_) => prop_assert_eq!(out, "["),
        }
    }

    #[test]
    fn keys_split_where_they_were_joined(
        types in proptest::collection::vec(any_type(), 1..4),
        seed in any::<u64>(),
    ) {
        let mut random = Random::new(seed);
        let mut values: Vec<Vec<u8>> = types.iter().map(|part| value(part, &mut random)).collect();
        values.iter_mut().for_each(|value| value.truncate(1000));
        let joined: Vec<u8> = values
            .iter()
            .flat_map(|value| [&(value.len() as u16).to_be_bytes()[..], value, &[0]].concat())
            .collect();
        let composite = CqlType::Composite(types.into());
        let split = composite.key_values(&joined).unwrap();
        let split: Vec<&[u8]> = split.into_iter().map(|(_, value)| value).collect();
        prop_assert_eq!(&split, &values);
    }

    /// Compared with integers scaled to a common exponent.
    #[test]
    fn decimals_compare_like_fractions(
        a in any::<i64>(), b in any::<i64>(), small in any::<bool>(),
        scale_a in -8..8i32, scale_b in -8..8i32,
    ) {
        let (a, b) = if small { (a % 1000, b % 1000) } else { (a, b) };
        let exact = |unscaled: i64, scale: i32| i128::from(unscaled) * 10i128.pow((8 - scale) as u32);
        let value = |unscaled: i64, scale: i32| {
            [&scale.to_be_bytes()[..], &unscaled.to_be_bytes()].concat()
        };
        prop_assert_eq!(
            CqlType::Decimal.compare(&value(a, scale_a), &value(b, scale_b)),
            exact(a, scale_a).cmp(&exact(b, scale_b))
        );
    }

    /// The same with values of more than 128 bits, for which the arithmetic has another code path.
    #[test]
    fn long_decimals_compare_like_short_ones(
        a in -2000..2000i64, b in -2000..2000i64, scale_a in -4..4i32, scale_b in -4..4i32,
    ) {
        // Multiplied by 10^60 with the scale on one side, with digits on the other.
        let stretched = |unscaled: i64, scale: i32| {
            let mut magnitude = vec![0u8; 32];
            magnitude[24..].copy_from_slice(&unscaled.unsigned_abs().to_be_bytes());
            for _ in 0..60 {
                let mut carry = 0u32;
                for byte in magnitude.iter_mut().rev() {
                    let product = u32::from(*byte) * 10 + carry;
                    *byte = product as u8;
                    carry = product >> 8;
                }
            }
            if unscaled < 0 {
                let mut carry = true;
                for byte in magnitude.iter_mut().rev() {
                    (*byte, carry) = (!*byte).overflowing_add(u8::from(carry));
                }
            }
            [&scale.to_be_bytes()[..], &magnitude].concat()
        };
        let short = |unscaled: i64, scale: i32| {
            [&(scale - 60).to_be_bytes()[..], &unscaled.to_be_bytes()].concat()
        };
        let order = CqlType::Decimal.compare(&short(a, scale_a), &short(b, scale_b));
        for (x, y) in [
            (stretched(a, scale_a), stretched(b, scale_b)),
            (stretched(a, scale_a), short(b, scale_b)),
            (short(a, scale_a), stretched(b, scale_b)),
        ] {
            prop_assert_eq!(CqlType::Decimal.compare(&x, &y), order);
        }
    }
}

/// Numbers beyond a double's range are valid JSON.
fn is_json(parsed: &Result<serde_json::Value, serde_json::Error>) -> bool {
    match parsed {
        Ok(_) => true,
        Err(error) => error.to_string().starts_with("number out of range"),
    }
}
