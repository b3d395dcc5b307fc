use super::*;

fn parse(text: &str) -> CqlType {
    CqlType::parse(text).unwrap()
}

fn message(text: &str) -> String {
    CqlType::parse(text).unwrap_err().to_string()
}

fn list(element: CqlType, multi_cell: bool) -> CqlType {
    CqlType::List {
        element: Arc::new(element),
        multi_cell,
    }
}

#[test]
fn names_with_and_without_package() {
    assert_eq!(parse("Int32Type"), CqlType::Int32);
    assert_eq!(
        parse("org.apache.cassandra.db.marshal.DateType"),
        CqlType::LegacyDate
    );
    assert_eq!(parse(" \t\nUTF8Type \n"), CqlType::Utf8);
    assert_eq!(parse(""), CqlType::Bytes);
    assert_eq!(parse("  "), CqlType::Bytes);
}

#[test]
fn frozen_applies_to_all_nested_types() {
    let inner = list(CqlType::Int32, false);
    let nested = CqlType::Map {
        key: Arc::new(CqlType::Utf8),
        value: Arc::new(inner.clone()),
        multi_cell: false,
    };
    // As written by 5.0, by 3.x, and with repeated freezing.
    assert_eq!(
        parse("FrozenType(MapType(UTF8Type,ListType(Int32Type)))"),
        nested
    );
    assert_eq!(
        parse("FrozenType(MapType(UTF8Type,FrozenType(ListType(Int32Type))))"),
        nested
    );
    assert_eq!(
        parse("FrozenType(FrozenType(MapType(UTF8Type,ListType(Int32Type))))"),
        nested
    );
    assert_eq!(
        parse("ListType(FrozenType(ListType(Int32Type)))"),
        list(inner.clone(), true)
    );
    assert_eq!(
        parse("ListType(ListType(Int32Type))"),
        list(inner.clone(), true)
    );
    assert_eq!(
        parse("TupleType(ListType(Int32Type))"),
        CqlType::Tuple(vec![inner].into())
    );
}

#[test]
fn user_type_names_are_hexadecimal() {
    let text = "org.apache.cassandra.db.marshal.UserType(ks_1,61646472,\
                737472656574:UTF8Type,7a6970:FrozenType(ListType(Int32Type)))";
    let CqlType::Udt(udt) = parse(text) else {
        panic!("not a UDT")
    };
    assert!(udt.multi_cell);
    assert_eq!(
        (udt.keyspace.as_str(), udt.name.as_slice()),
        ("ks_1", b"addr".as_slice())
    );
    assert_eq!(udt.fields[0], (b"street".to_vec(), CqlType::Utf8));
    assert_eq!(
        udt.fields[1],
        (b"zip".to_vec(), list(CqlType::Int32, false))
    );
    assert!(!parse("FrozenType(UserType(k,61,62:UTF8Type))").is_multi_cell());
    assert_eq!(
        parse("UserType( k , 61 , 62 : UTF8Type )"),
        parse("UserType(k,61,62:UTF8Type)")
    );
}

/// Without it, the written form would be read as another type.
#[test]
fn a_user_type_has_a_keyspace() {
    for text in ["UserType(,,6e60)", "UserType()"] {
        assert!(message(text).contains("keyspace of a user type"));
    }
}

#[test]
fn vectors_with_cassandras_blanks_and_without() {
    let vector = CqlType::Vector {
        element: Arc::new(CqlType::Float),
        dimension: 3,
    };
    assert_eq!(parse("VectorType(FloatType , 3)"), vector);
    assert_eq!(parse("VectorType(FloatType,3)"), vector);
    assert_eq!(vector.fixed_len(), Some(12));
    for bad in ["0", "-1", "2147483648", "", "x"] {
        assert!(
            message(&format!("VectorType(FloatType , {bad})")).contains("dimension"),
            "{bad}"
        );
    }
    // Two billion floats would not fit 32 bits, nor would nested dimensions.
    assert!(message("VectorType(FloatType , 2147483647)").contains("at most 2147483647 bytes"));
    assert!(message("VectorType(VectorType(FloatType , 65536) , 65536)").contains("at most"));
}

#[test]
fn composites_and_aliases() {
    let types = vec![CqlType::Int32, CqlType::Reversed(Arc::new(CqlType::Utf8))];
    assert_eq!(
        parse("CompositeType(Int32Type,ReversedType(UTF8Type))"),
        CqlType::Composite(types.into())
    );
    let aliases = vec![(b'a', CqlType::Int32), (b'b', CqlType::Utf8)];
    assert_eq!(
        parse("DynamicCompositeType(b=>UTF8Type, a => Int32Type)"),
        CqlType::DynamicComposite(aliases.clone().into())
    );
    assert_eq!(
        parse("DynamicCompositeType(b=>LongType,a=>Int32Type,b=>UTF8Type)"),
        CqlType::DynamicComposite(aliases.into())
    );
    assert_eq!(
        parse("DynamicCompositeType"),
        CqlType::DynamicComposite(Arc::new([]))
    );
}

#[test]
fn partitioner_defined_order_of_both_forms() {
    let partitioner = "org.apache.cassandra.dht.Murmur3Partitioner".to_owned();
    assert_eq!(
        parse("PartitionerDefinedOrder(org.apache.cassandra.dht.Murmur3Partitioner)"),
        CqlType::PartitionerDefinedOrder {
            partitioner: partitioner.clone(),
            key_type: None
        }
    );
    assert_eq!(
        parse("PartitionerDefinedOrder(org.apache.cassandra.dht.Murmur3Partitioner:UTF8Type)"),
        CqlType::PartitionerDefinedOrder {
            partitioner,
            key_type: Some(Arc::new(CqlType::Utf8))
        }
    );
}

#[test]
fn reversed_as_a_parameter_of_1_x() {
    let reversed = CqlType::Reversed(Arc::new(CqlType::Int32));
    assert_eq!(parse("Int32Type(reversed=true)"), reversed);
    assert_eq!(parse("Int32Type(reversed)"), reversed);
    assert_eq!(parse("Int32Type(reversed = false, x)"), CqlType::Int32);
    assert_eq!(parse("Int32Type()"), CqlType::Int32);
}

#[test]
fn unknown_classes_are_named() {
    assert_eq!(
        message("com.example.GeoType"),
        "not supported: type 'com.example.GeoType': not a type of org.apache.cassandra.db.marshal \
         that SSTables of 4.0 or later hold"
    );
    assert!(
        message("ColumnToCollectionType(61:ListType(UTF8Type))").contains("ColumnToCollection")
    );
    assert!(message("ListType(TokenUtf8Type)").contains("TokenUtf8Type"));
    // A package alone is not a type.
    assert!(message("org.apache.cassandra.db.marshal.").contains("not supported"));
}

#[test]
fn errors_have_position_and_finding() {
    assert_eq!(
        message("MapType(UTF8Type,)"),
        "corrupt type_string at offset 0: expected MapType of 2 type(s), found '1 types'"
    );
    assert_eq!(
        message("ListType(Int32Type"),
        "corrupt type_string at offset 18: expected a type, found the end of the text"
    );
    assert_eq!(
        message("UserType(k,6x,62:UTF8Type)"),
        "corrupt type_string at offset 11: expected a name in hexadecimal digits, found '6x'"
    );
    assert_eq!(
        message("Int32Type)"),
        "corrupt type_string at offset 9: expected the end of the text, found ')'"
    );
    for bad in [
        "(",
        ")",
        ",",
        "()",
        "ListType",
        "ListType(",
        "ListType()",
        "ListType(,,Int32Type)",
        "ListType(Int32Type,Int32Type)",
        "FrozenType",
        "ReversedType()",
        "CompositeType()",
        "UserType",
        "UserType(",
        "UserType(k",
        "UserType(k,61,62",
        "UserType(k,61,62:",
        "VectorType",
        "VectorType(",
        "VectorType(FloatType",
        "VectorType(FloatType,3",
        "DynamicCompositeType(",
        "DynamicCompositeType(ab=>Int32Type)",
        "DynamicCompositeType(a=",
        "PartitionerDefinedOrder",
        "PartitionerDefinedOrder(",
        "PartitionerDefinedOrder(x",
        "Int32Type(",
        "Int32Type(reversed",
        "Int32Type(=)",
        "\u{e9}",
        "ListType(\u{1f600})",
    ] {
        assert!(CqlType::parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn hostile_nesting_is_refused() {
    let open = |depth: usize| "ListType(".repeat(depth);
    let text = format!(
        "{}Int32Type{}",
        open(MAX_DEPTH - 1),
        ")".repeat(MAX_DEPTH - 1)
    );
    assert!(CqlType::parse(&text).is_ok());
    assert!(message(&open(MAX_DEPTH)).contains("nested deeper"));
    assert!(message(&open(1_000_000)).contains("nested deeper"));
    assert!(message(&"a".repeat(MAX_TEXT_LEN + 1)).contains("at most 16777216 bytes"));
    // A long name is not repeated in full.
    assert!(message(&"a".repeat(100_000)).len() < 300);
}
