//! The values in a partition key.
//!
//! The key of one column is the bare value; that of several is `(u16 length | bytes | 00)*`.
//!
//! Source: `CompositeType`, `JsonTransformer.serializePartitionKey`.

use crate::types::elements::{Component, Elements, split_static_marker};
use crate::types::{CqlType, MarshalError};

impl CqlType {
    /// Values of a partition key with their types, as listed by `sstabledump`: one unless this is a
    /// composite; fewer than its types if the key ends early.
    ///
    /// # Errors
    /// A composite that ends within a component.
    pub fn key_values<'t, 'k>(
        &'t self,
        key: &'k [u8],
    ) -> Result<Vec<(&'t CqlType, &'k [u8])>, MarshalError> {
        let CqlType::Composite(types) = self else {
            return Ok(vec![(self, key)]);
        };
        let (_, components) = split_static_marker(key);
        let mut elements = Elements::new(components);
        let mut values = Vec::with_capacity(types.len());
        for component_type in types.iter() {
            match elements.next_component() {
                Component::End => break,
                Component::Broken(_) => return Err(broken(values.len())),
                Component::Value {
                    value,
                    end_of_component,
                } => {
                    values.push((component_type, value));
                    if end_of_component != 0 {
                        break;
                    }
                }
            }
        }
        Ok(values)
    }

    /// Describes the key for an error message: the values as text joined by `:`, or `0x` and hexadecimal
    /// digits if they cannot be read.
    pub fn describe_key(&self, key: &[u8]) -> String {
        let texts = self.key_values(key).and_then(|values| {
            values
                .into_iter()
                .map(|(part, value)| part.to_text(value))
                .collect()
        });
        match texts {
            Ok::<Vec<String>, _>(texts) => texts.join(":"),
            Err(_) => super::text::hexadecimal(key),
        }
    }
}

fn broken(index: usize) -> MarshalError {
    MarshalError::new(format!("component {index} of the composite ends early"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn composite_keys_split_and_single_keys_do_not() {
        let key = [0, 4, 0, 0, 0, 1, 0, 0, 1, b'a', 0];
        let composite = CqlType::parse("CompositeType(Int32Type,UTF8Type)").unwrap();
        assert_eq!(
            composite.key_values(&key).unwrap(),
            [(&CqlType::Int32, &[0, 0, 0, 1][..]), (&CqlType::Utf8, b"a")]
        );
        assert_eq!(composite.describe_key(&key), "1:a");
        assert_eq!(
            CqlType::Bytes.key_values(&key).unwrap(),
            [(&CqlType::Bytes, &key[..])]
        );
        assert_eq!(CqlType::Utf8.describe_key(b"k1"), "k1");
    }

    #[test]
    fn damaged_keys_are_described_in_hexadecimal() {
        let composite = CqlType::parse("CompositeType(Int32Type,UTF8Type)").unwrap();
        assert!(composite.key_values(&[0, 4, 0]).is_err());
        assert!(composite.key_values(&[0, 1, 7]).is_err());
        assert_eq!(composite.describe_key(&[0, 4, 0]), "0x000400");
        assert_eq!(CqlType::Utf8.describe_key(&[0xff]), "0xff");
    }
}
