//! A way to the server that can be cut, or lead nowhere.

use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// What the way does with what comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Passes it on.
    Open,
    /// Takes what clients send and passes nothing on.
    Nowhere,
    /// Passes on what clients send and cuts the connection in place of the next answer; is open
    /// afterwards.
    CutsOneAnswer,
}

pub(crate) struct Proxy {
    pub(crate) port: u16,
    way: Arc<watch::Sender<(Way, u64)>>,
    /// Ends with the proxy.
    _serving: JoinSet<()>,
}

impl Proxy {
    pub(crate) async fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let own = listener.local_addr().unwrap().port();
        let (way, _) = watch::channel((Way::Open, 0));
        let way = Arc::new(way);
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, port, Arc::clone(&way)));
        Self { port: own, way, _serving: serving }
    }

    pub(crate) fn set(&self, way: Way) {
        self.way.send_modify(|(current, _)| *current = way);
    }

    /// Ends every connection that there is.
    pub(crate) fn cut(&self) {
        self.way.send_modify(|(_, cuts)| *cuts += 1);
    }
}

async fn serve(listener: TcpListener, port: u16, way: Arc<watch::Sender<(Way, u64)>>) {
    let mut connections = JoinSet::new();
    loop {
        let (client, _) = listener.accept().await.unwrap();
        let server = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let way = Arc::clone(&way);
        let mut ways = way.subscribe();
        let cuts = ways.borrow_and_update().1;
        connections.spawn(async move {
            tokio::select! {
                () = carry(client, server, &way) => {}
                ended = ways.wait_for(|(_, now)| *now > cuts) => drop(ended),
            }
        });
    }
}

async fn carry(mut client: TcpStream, mut server: TcpStream, way: &watch::Sender<(Way, u64)>) {
    let (mut asked, mut answered) = (vec![0; 65_536], vec![0; 65_536]);
    loop {
        tokio::select! {
            read = client.read(&mut asked) => {
                let Ok(length @ 1..) = read else { return };
                if way.borrow().0 != Way::Nowhere {
                    server.write_all(&asked[..length]).await.unwrap();
                }
            }
            read = server.read(&mut answered) => {
                let Ok(length @ 1..) = read else { return };
                if way.borrow().0 == Way::CutsOneAnswer {
                    way.send_modify(|(current, _)| *current = Way::Open);
                    return;
                }
                client.write_all(&answered[..length]).await.unwrap();
            }
        }
    }
}
