//! The collection and its indexes, made once.

use ports::BusError;
use ports::recall::Space;
use qdrant_client::qdrant::{
    CreateCollectionBuilder, CreateFieldIndexCollectionBuilder, CreateVectorNameRequestBuilder,
    DeleteVectorNameRequestBuilder, DenseVectorCreationConfigBuilder, Distance, FieldType,
    KeywordIndexParamsBuilder, Modifier, SparseVectorParamsBuilder, SparseVectorsConfigBuilder,
};

use crate::points::{MEANING, WORDS};
use crate::store::{QdrantRecall, wrong};

const KEYWORDS: [&str; 5] = ["what", "thread", "kind", "edition", "subjects"];
const NUMBERS: [(&str, FieldType); 5] = [
    ("turn", FieldType::Integer),
    ("at", FieldType::Integer),
    ("until", FieldType::Integer),
    ("days", FieldType::Float),
    ("importance", FieldType::Float),
];

/// Makes what is missing. Making it twice at once does no harm.
pub(crate) async fn ensure(store: &QdrantRecall) -> Result<(), BusError> {
    let name = &store.collection;
    if !store.client.collection_exists(name).await.map_err(|error| wrong(&error))? {
        let mut sparse = SparseVectorsConfigBuilder::default();
        let params = SparseVectorParamsBuilder::default().modifier(Modifier::Idf);
        sparse.add_named_vector_params(WORDS, params);
        let create = CreateCollectionBuilder::new(name).sparse_vectors_config(sparse);
        let made = store.client.create_collection(create).await;
        if let Err(error) = made
            && !store.client.collection_exists(name).await.map_err(|error| wrong(&error))?
        {
            return Err(wrong(&error));
        }
    }
    index(store, "tenant", FieldType::Keyword, true).await?;
    for field in KEYWORDS {
        index(store, field, FieldType::Keyword, false).await?;
    }
    for (field, kind) in NUMBERS {
        index(store, field, kind, false).await?;
    }
    Ok(())
}

async fn index(
    store: &QdrantRecall,
    field: &str,
    kind: FieldType,
    is_tenant: bool,
) -> Result<(), BusError> {
    let name = store.collection.clone();
    let mut create = CreateFieldIndexCollectionBuilder::new(name, field, kind).wait(true);
    if is_tenant {
        create = create.field_index_params(KeywordIndexParamsBuilder::default().is_tenant(true));
    }
    store.client.create_field_index(create).await.map_err(|error| wrong(&error)).map(drop)
}

/// Takes the vectors of the earlier space away and makes room for those of the new one.
pub(crate) async fn resettle(
    store: &QdrantRecall,
    before: Option<&Space>,
    after: Option<&Space>,
) -> Result<(), BusError> {
    if before.is_some() {
        let remove = DeleteVectorNameRequestBuilder::new(store.collection.clone(), MEANING);
        store.client.delete_vector_name(remove.wait(true)).await.map_err(|error| wrong(&error))?;
    }
    if let Some(space) = after {
        let size = u64::try_from(space.dimension).unwrap_or(u64::MAX);
        let config = DenseVectorCreationConfigBuilder::new(size, Distance::Cosine);
        let create = CreateVectorNameRequestBuilder::new(store.collection.clone(), MEANING, config);
        store.client.create_vector_name(create.wait(true)).await.map_err(|error| wrong(&error))?;
    }
    Ok(())
}
