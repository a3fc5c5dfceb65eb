// The messages of the tagged protocol as a terminal written in Rust declares them. The tests
// read this file: each request must be understood, and each answer must have these members.

#[serde(tag = "type", rename_all = "snake_case")]
enum Request {
    Initialize { demo_mode: bool },
    Query { query: String },
    ToolApprove { tool_id: String, approved: bool },
    SessionCreate { title: Option<String> },
    SessionSave,
    SessionLoad { session_id: String },
    SessionList { limit: Option<usize> },
    SessionDelete { session_id: String },
    SessionExport { session_id: Option<String>, format: String },
}

#[serde(tag = "type", rename_all = "snake_case")]
enum Answer {
    SessionCreated { session_id: String },
    SessionSaved { success: bool },
    SessionLoaded { session_id: String, message_count: usize },
    SessionListResult { sessions: Vec<SessionInfo> },
    SessionDeleted { success: bool },
    SessionExported { content: String },
}

struct SessionInfo {
    session_id: String,
    title: Option<String>,
    created_at: String,
    updated_at: String,
    message_count: usize,
    total_tokens: usize,
}
