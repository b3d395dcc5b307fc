use super::*;

/// Replaces `@` by Cassandra's package.
fn full(text: &str) -> String {
    text.replace('@', PACKAGE)
}

fn written(text: &str) -> String {
    CqlType::parse(text).unwrap().class_string()
}

#[test]
fn frozen_is_written_once_around_the_outermost() {
    // Strings as 5.0.5 and 6.0-alpha2 write them into headers.
    for text in [
        "@Int32Type",
        "@ListType(@Int32Type)",
        "@FrozenType(@ListType(@ListType(@Int32Type)))",
        "@ListType(@FrozenType(@SetType(@Int32Type)))",
        "@MapType(@UTF8Type,@FrozenType(@MapType(@Int32Type,@ListType(@UTF8Type))))",
        "@TupleType(@Int32Type,@ListType(@UTF8Type),@UserType(ks,75,61:@Int32Type))",
        "@UserType(ks,75,61:@FrozenType(@ListType(@Int32Type)),62:@TupleType(@SetType(@UTF8Type)))",
        "@FrozenType(@UserType(ks,75,61:@ListType(@Int32Type)))",
        "@VectorType(@FloatType , 3)",
        "@VectorType(@FrozenType(@ListType(@Int32Type)) , 3)",
        "@VectorType(@ListType(@Int32Type) , 3)",
        "@FrozenType(@ListType(@VectorType(@ListType(@Int32Type) , 3)))",
        "@ReversedType(@FrozenType(@ListType(@Int32Type)))",
        "@CompositeType(@Int32Type,@FrozenType(@SetType(@UTF8Type)))",
        "@DynamicCompositeType(a=>@Int32Type,b=>@UTF8Type)",
        "@PartitionerDefinedOrder(org.apache.cassandra.dht.Murmur3Partitioner)",
        "@PartitionerDefinedOrder(org.apache.cassandra.dht.Murmur3Partitioner:@UTF8Type)",
    ] {
        let text = full(text);
        assert_eq!(written(&text), text);
    }
}

#[test]
fn older_forms_are_rewritten() {
    assert_eq!(
        written("FrozenType(ListType(FrozenType(ListType(Int32Type))))"),
        full("@FrozenType(@ListType(@ListType(@Int32Type)))")
    );
    assert_eq!(
        written("Int32Type(reversed=true)"),
        full("@ReversedType(@Int32Type)")
    );
}

#[test]
fn names_in_cql() {
    for (text, cql) in [
        ("BytesType", "blob"),
        ("ReversedType(TimeUUIDType)", "timeuuid"),
        (
            "ListType(FrozenType(ListType(Int32Type)))",
            "list<frozen<list<int>>>",
        ),
        (
            "FrozenType(MapType(UTF8Type,IntegerType))",
            "frozen<map<text, varint>>",
        ),
        ("TupleType(Int32Type,UTF8Type)", "frozen<tuple<int, text>>"),
        ("VectorType(FloatType , 3)", "vector<float, 3>"),
        ("VectorType(SetType(Int32Type) , 3)", "vector<set<int>, 3>"),
        ("UserType(ks,61646472,61:Int32Type)", "addr"),
        (
            "FrozenType(UserType(ks,41225f,61:Int32Type))",
            "frozen<\"A\"\"_\">",
        ),
        (
            "CompositeType(Int32Type)",
            "'org.apache.cassandra.db.marshal.CompositeType(org.apache.cassandra.db.marshal.Int32Type)'",
        ),
    ] {
        assert_eq!(CqlType::parse(text).unwrap().to_string(), cql);
    }
}
