//! `tools`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// `systole tools`.
#[derive(Debug, Subcommand)]
pub(crate) enum Tools {
    /// Lists tools: name, what repeating does, limit, approval, description.
    #[command(after_help = "Example:\n  systole tools list agents/ops/tools.yaml")]
    List {
        /// Agents' files, tool files, or folders that hold agents; without any, as for `dev`.
        #[arg(value_name = "FILE")]
        files: Vec<PathBuf>,
        /// As JSON, one tool a line.
        #[arg(long)]
        json: bool,
    },
    /// Writes a tool file from what a server or a description offers, for review.
    Import {
        /// From where.
        #[command(subcommand)]
        from: Import,
    },
    /// Checks tool files, agent files and rehearsals, and gives advice.
    #[command(
        after_help = "Example:\n  systole tools check agents/ops/tools.yaml agents/ops/agent.yaml"
    )]
    Check {
        /// The files.
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
}

/// Where tools are imported from.
#[derive(Debug, Subcommand)]
pub(crate) enum Import {
    /// The operations of an API, from its openapi description (3.0 or 3.1).
    #[command(
        after_help = "Example:\n  systole tools import openapi shop.yaml --operations getPet,putPet --auth-env SHOP_KEY"
    )]
    Openapi(ImportOpenapi),
    /// The tools of an MCP server.
    #[command(
        after_help = "Examples:\n  systole tools import mcp -- npx @modelcontextprotocol/server-filesystem@2026.8.31 /data\n  systole tools import mcp https://mcp.example.com/mcp --header Authorization=TOKEN"
    )]
    Mcp(ImportMcp),
}

/// Where an import is written.
#[derive(Args, Debug)]
pub(crate) struct Written {
    /// The file to write; `-` for standard output.
    #[arg(long, value_name = "FILE", default_value = "tools.yaml")]
    pub(crate) out: PathBuf,
    /// Writes over a file that says something else.
    #[arg(long)]
    pub(crate) force: bool,
    /// Put before each tool's name.
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) prefix: String,
    /// Lets the host lie in a private network.
    #[arg(long)]
    pub(crate) private: bool,
}

/// `systole tools import openapi`.
#[derive(Args, Debug)]
pub(crate) struct ImportOpenapi {
    /// The description, a file or a URL.
    pub(crate) from: String,
    /// Only these operations; all that can be tools without it.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) operations: Vec<String>,
    /// Only operations with these tags.
    #[arg(long, value_name = "TAGS", value_delimiter = ',', conflicts_with = "operations")]
    pub(crate) tags: Vec<String>,
    /// Where the API is, when the description does not say it or is not believed.
    #[arg(long, value_name = "URL")]
    pub(crate) server: Option<String>,
    /// The variable of the worker that holds the API's key.
    #[arg(long, value_name = "NAME")]
    pub(crate) auth_env: Option<String>,
    /// Where it is written.
    #[command(flatten)]
    pub(crate) written: Written,
}

/// `systole tools import mcp`.
#[derive(Args, Debug)]
pub(crate) struct ImportMcp {
    /// The server's command, behind `--`, or its URL.
    #[arg(required = true, num_args = 1.., value_name = "COMMAND|URL")]
    pub(crate) server: Vec<String>,
    /// Only these tools; all without it.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) tools: Vec<String>,
    /// A variable that the server's process may see; its value stays where it is.
    #[arg(long, value_name = "NAME")]
    pub(crate) env: Vec<String>,
    /// A header whose value is in a variable, such as `Authorization=TOKEN`; `Bearer ` is put before
    /// the value of Authorization.
    #[arg(long, value_name = "HEADER=VARIABLE")]
    pub(crate) header: Vec<String>,
    /// Where it is written.
    #[command(flatten)]
    pub(crate) written: Written,
}
