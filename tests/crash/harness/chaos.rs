//! Kills replicas, servers and connections, and lets the other users of the servers act, at times that the seed
//! determines.

use std::{sync::Arc, time::Duration};

use sparkgate_testing::dice::Dice;
use sparkgate_testing::{
    fault_proxy::{Fault, Way},
    object_store::{ObjectStore, StoreFault},
    webhook::{self, Conduct, Webhook},
};
use sqlx::{ConnectOptions, Executor, PgPool};
use tokio::time::{Instant, sleep};

use super::{
    adversary::Adversary,
    locks::hold,
    pages::PAGES,
    replica::Replica,
    servers::{Kubernetes, Postgres, grant, revoke},
    world::World,
};

/// The number of faults of each kind.
#[derive(Debug, Clone)]
pub(crate) struct Blows {
    /// SIGKILLs of a replica, one every 0.2 to 1.5 s.
    pub(crate) kills: usize,
    /// SIGSTOPs of a replica for 4 to 8 s, which is longer than a lease.
    pub(crate) pauses: usize,
    pub(crate) postgres: usize,
    pub(crate) apiserver: usize,
    pub(crate) etcd: usize,
    pub(crate) compactions: usize,
    /// Connections cut, refused or half-open for a while.
    pub(crate) network: usize,
    /// One replica isolated from the API server or from Postgres alone, for longer than a lease, in both directions or
    /// in one.
    pub(crate) isolations: usize,
    /// One replica isolated like that for a third of the storm.
    pub(crate) long_isolations: usize,
    /// Times for which a proxy answers one replica instead of the API server.
    pub(crate) pages: usize,
    /// A transaction of another client is open throughout, so that no old version of a row is ever removed.
    pub(crate) snapshot: bool,
    /// The gateway's rights removed for a while.
    pub(crate) denials: usize,
    /// An admission webhook of the namespace that changes, delays, denies or doesn't answer writes to pods for a while.
    pub(crate) webhooks: usize,
    /// Actions of others on pods: see [`Adversary`].
    pub(crate) acts: usize,
    /// Rows and tables locked by others, transactions left open, backends terminated.
    pub(crate) locks: usize,
    /// Times for which the object store refuses requests, loses replies, or lists in part.
    pub(crate) objects: usize,
    /// The probability that a request is carried out and its reply lost.
    pub(crate) lost_replies: f64,
}

impl Blows {
    /// The mean pause between two kills.
    const PACE: Duration = Duration::from_millis(850);

    /// Returns the approximate duration of the storm.
    pub(crate) fn time(&self) -> Duration {
        Self::PACE * u32::try_from(self.kills).unwrap()
    }
}

/// Injects all faults; returns when the last one is over.
pub(crate) async fn storm(world: &mut World, blows: &Blows) {
    let seed = world.seed;
    let replicas = &world.replicas;
    for replica in replicas {
        replica.database.lose_replies(blows.lost_replies);
        replica.cluster.lose_replies(blows.lost_replies);
    }
    let (adversary, pool) = (Adversary::new(world), world.pool.clone());
    let (client, namespace, webhook) = (world.client.clone(), world.namespace.clone(), &world.webhook);
    let (neighbours, objects) = (world.neighbours.as_ref(), world.objects.as_ref());
    let servers = world.servers.both();
    let dice = |purpose| Dice::new(seed, purpose);
    tokio::join!(
        kill_replicas(replicas, dice("kills"), blows.kills),
        pause_replicas(replicas, dice("pauses"), blows),
        strike_postgres(&mut servers.postgres, dice("postgres"), blows),
        strike_kubernetes(&mut servers.kubernetes, dice("kubernetes"), blows),
        strike_network(replicas, dice("network"), blows),
        isolate(replicas, dice("isolations"), blows),
        isolate_for_long(replicas, dice("long isolations"), blows),
        answer_with_pages(replicas, dice("pages"), blows),
        keep_a_snapshot(&pool, blows),
        deny(&client, &namespace, dice("denials"), blows),
        misbehave(webhook, dice("webhooks"), blows),
        touch_pods(&adversary, dice("acts"), blows),
        lock(&pool, dice("locks"), blows),
        harm_objects(objects, dice("objects"), blows),
        async {
            if let Some(neighbours) = neighbours {
                neighbours.storm(dice("neighbours"), blows).await;
            }
        },
    );
}

pub(super) async fn kill_replicas(replicas: &[Arc<Replica>], mut dice: Dice, kills: usize) {
    for _ in 0..kills {
        sleep(dice.millis(200, 1500)).await;
        let victim = loop {
            let up: Vec<_> = replicas.iter().filter(|replica| replica.is_up()).collect();
            if let Some(victim) = dice.pick(&up) {
                break *victim;
            }
            sleep(Duration::from_millis(20)).await;
        };
        victim.kill();
    }
}

/// Waits until it is time for fault number `nth` of `count`.
async fn moment(dice: &mut Dice, began: Instant, blows: &Blows, nth: usize, count: usize) {
    let share = blows.time().as_millis() as u64 / (count as u64).max(1);
    let at = Duration::from_millis(share * nth as u64 + dice.below(share * 3 / 4));
    tokio::time::sleep_until(began + at).await;
}

async fn pause_replicas(replicas: &[Arc<Replica>], mut dice: Dice, blows: &Blows) {
    let began = Instant::now();
    for nth in 0..blows.pauses {
        moment(&mut dice, began, blows, nth, blows.pauses).await;
        let up: Vec<_> = replicas.iter().filter(|replica| replica.is_up()).collect();
        if let Some(victim) = dice.pick(&up) {
            victim.pause(dice.millis(4000, 8000)).await;
        }
    }
}

async fn strike_postgres(postgres: &mut Postgres, mut dice: Dice, blows: &Blows) {
    let began = Instant::now();
    for nth in 0..blows.postgres {
        moment(&mut dice, began, blows, nth, blows.postgres).await;
        postgres.kill();
        sleep(dice.millis(0, 1500)).await;
        postgres.ready().await;
    }
}

#[derive(Clone, Copy)]
enum Blow {
    Apiserver,
    Etcd,
    Compaction,
}

async fn strike_kubernetes(kubernetes: &mut Kubernetes, mut dice: Dice, blows: &Blows) {
    let mut all = [
        vec![Blow::Apiserver; blows.apiserver],
        vec![Blow::Etcd; blows.etcd],
        vec![Blow::Compaction; blows.compactions],
    ]
    .concat();
    let (began, count) = (Instant::now(), all.len());
    for nth in 0..count {
        moment(&mut dice, began, blows, nth, count).await;
        let blow = all.swap_remove(usize::try_from(dice.below(all.len() as u64)).unwrap());
        match blow {
            Blow::Apiserver => kubernetes.kill_apiserver(),
            Blow::Etcd => kubernetes.kill_etcd(),
            // If the API server isn't ready yet, there is nothing to compact.
            Blow::Compaction => drop(kubernetes.compact().await),
        }
        sleep(dice.millis(0, 1000)).await;
        kubernetes.ready().await;
    }
}

async fn isolate(replicas: &[Arc<Replica>], mut dice: Dice, blows: &Blows) {
    let began = Instant::now();
    for nth in 0..blows.isolations {
        moment(&mut dice, began, blows, nth, blows.isolations).await;
        let replica = dice.pick(replicas).unwrap();
        let proxy = if dice.one_in(2) { &replica.database } else { &replica.cluster };
        let faults =
            [Fault::Silent(Way::Both), Fault::Silent(Way::ToServer), Fault::Silent(Way::ToClient), Fault::Refuse];
        let fault = *dice.pick(&faults).unwrap();
        proxy.set(fault);
        if fault == Fault::Refuse {
            proxy.cut();
        }
        sleep(dice.millis(4000, 9000)).await;
        proxy.set(Fault::None);
    }
}

/// One replica reaches one of its servers no more, for a third of the storm: nothing may wait for it.
async fn isolate_for_long(replicas: &[Arc<Replica>], mut dice: Dice, blows: &Blows) {
    let began = Instant::now();
    for nth in 0..blows.long_isolations {
        moment(&mut dice, began, blows, nth, blows.long_isolations).await;
        let replica = dice.pick(replicas).unwrap();
        let proxy = if dice.one_in(3) { &replica.database } else { &replica.cluster };
        let until = Instant::now() + blows.time() / 3;
        // Other faults end by setting their proxy to none.
        while Instant::now() < until {
            proxy.set(Fault::Refuse);
            proxy.cut();
            sleep(Duration::from_millis(500)).await;
        }
        proxy.set(Fault::None);
    }
}

async fn answer_with_pages(replicas: &[Arc<Replica>], mut dice: Dice, blows: &Blows) {
    let Some(proxy) = replicas.iter().find_map(|replica| replica.pages.as_ref()) else { return };
    let began = Instant::now();
    for nth in 0..blows.pages {
        moment(&mut dice, began, blows, nth, blows.pages).await;
        proxy.set(dice.pick(PAGES).copied());
        sleep(dice.millis(1000, 6000)).await;
        proxy.set(None);
    }
}

/// Keeps a snapshot open as long as the storm lasts, as a dump of the database does. After an end of the server it is a new one.
async fn keep_a_snapshot(pool: &PgPool, blows: &Blows) {
    let snapshot = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM submissions";
    let ends = Instant::now() + blows.time();
    while blows.snapshot && Instant::now() < ends {
        let options = pool.connect_options().as_ref().clone();
        if let Ok(mut connection) = options.connect().await
            && connection.execute(snapshot).await.is_ok()
        {
            while Instant::now() < ends && connection.execute("SELECT 1").await.is_ok() {
                sleep(Duration::from_millis(500)).await;
            }
        }
        sleep(Duration::from_millis(500)).await;
    }
}

async fn deny(client: &kube::Client, namespace: &str, mut dice: Dice, blows: &Blows) {
    let began = Instant::now();
    for nth in 0..blows.denials {
        moment(&mut dice, began, blows, nth, blows.denials).await;
        revoke(client, namespace).await;
        sleep(dice.millis(500, 4000)).await;
        grant(client, namespace).await;
    }
}

async fn misbehave(webhook: &Webhook, mut dice: Dice, blows: &Blows) {
    let began = Instant::now();
    for nth in 0..blows.webhooks {
        moment(&mut dice, began, blows, nth, blows.webhooks).await;
        let conducts = [
            Conduct::Patch(webhook::side_car("injected")),
            Conduct::Patch(webhook::image("mirror.example.org/spark")),
            Conduct::Patch(webhook::label("injected.example.org/by", "webhook")),
            Conduct::Delay(dice.millis(100, 7000)),
            Conduct::Hang,
            Conduct::HangChanges,
            Conduct::Deny(429),
            Conduct::Deny(500),
        ];
        webhook.set(dice.pick(&conducts).unwrap().clone());
        sleep(dice.millis(500, 4000)).await;
        webhook.set(Conduct::Allow);
    }
}

async fn touch_pods(adversary: &Adversary, mut dice: Dice, blows: &Blows) {
    let began = Instant::now();
    for nth in 0..blows.acts {
        moment(&mut dice, began, blows, nth, blows.acts).await;
        adversary.act(&mut dice).await;
    }
}

async fn lock(pool: &PgPool, mut dice: Dice, blows: &Blows) {
    let began = Instant::now();
    for nth in 0..blows.locks {
        moment(&mut dice, began, blows, nth, blows.locks).await;
        hold(pool, &mut dice).await;
    }
}

async fn harm_objects(objects: Option<&ObjectStore>, mut dice: Dice, blows: &Blows) {
    let Some(objects) = objects else { return };
    let began = Instant::now();
    for nth in 0..blows.objects {
        moment(&mut dice, began, blows, nth, blows.objects).await;
        let faults = [
            StoreFault::Refuse,
            StoreFault::LoseReplies,
            StoreFault::BreakLists,
            StoreFault::HideNew(dice.millis(500, 20_000)),
        ];
        objects.set(*dice.pick(&faults).unwrap());
        sleep(dice.millis(500, 6000)).await;
        objects.set(StoreFault::None);
    }
}

async fn strike_network(replicas: &[Arc<Replica>], mut dice: Dice, blows: &Blows) {
    let began = Instant::now();
    for nth in 0..blows.network {
        moment(&mut dice, began, blows, nth, blows.network).await;
        let replica = dice.pick(replicas).unwrap();
        let proxy = if dice.one_in(2) { &replica.database } else { &replica.cluster };
        match dice.below(4) {
            0 => proxy.cut(),
            1 => {
                proxy.set(Fault::Refuse);
                proxy.cut();
            }
            // A connection stays half-open for good if it carried bytes meanwhile.
            2 => proxy.set(Fault::Silent(Way::Both)),
            _ => proxy.set(Fault::Silent(Way::ToClient)),
        }
        sleep(dice.millis(300, 2500)).await;
        proxy.set(Fault::None);
    }
}
