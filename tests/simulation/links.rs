//! The ways between the machines: each replica has its own to the database and to the API server, and each tenant's
//! namespaces have troubles of their own. A trouble that lasts is one that stays after all other faults have ended.

use crate::{
    counts::Count,
    plan::TENANTS,
    rng::Rng,
    store::{LeaseName, Time},
    world::World,
};

/// How long a call that hangs keeps its caller waiting.
const HANGS_FOR: Time = 2_000;

/// What is wrong with the namespaces of one tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// Writes aren't answered: a webhook hangs.
    Hangs,
    /// Writes are denied.
    Denies,
    /// No pod may be created: a quota is used up.
    OverQuota,
    /// Another transaction has locked the rows.
    Locked,
}

/// What stays bad after all other faults have ended: everything that doesn't depend on it has to make progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lasting {
    /// A replica can't reach the API server. It may also be unable to resign a lease.
    OffCluster {
        replica: usize,
        resigns: bool,
    },
    /// What answers a replica isn't the API server, but a proxy in front of it.
    Pages {
        replica: usize,
    },
    OffDatabase {
        replica: usize,
    },
    /// A process is stopped, with what it was about to send.
    Stopped {
        replica: usize,
    },
    Tenant {
        tenant: usize,
        trouble: Trouble,
    },
}

/// What a call to the API server meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Open,
    Away,
    /// A proxy answers with a page of its own, as one does that has no route for a moment.
    Page,
}

#[derive(Debug, Clone)]
pub(crate) struct Links {
    /// By replica: until then the database is away.
    database: Vec<Time>,
    cluster: Vec<Time>,
    pages: Vec<Time>,
    /// By tenant.
    troubles: [Option<(Time, Trouble)>; TENANTS as usize],
    pub(crate) lasting: Option<Lasting>,
}

impl Links {
    pub(crate) fn new(replicas: usize) -> Self {
        let open = vec![0; replicas];
        Self {
            database: open.clone(),
            cluster: open.clone(),
            pages: open,
            troubles: [None; TENANTS as usize],
            lasting: None,
        }
    }

    /// Ends everything but what lasts.
    pub(crate) fn heal(&mut self) {
        *self = Self { lasting: self.lasting, ..Self::new(self.database.len()) };
    }

    pub(crate) fn reaches_database(&self, replica: usize, now: Time) -> bool {
        now >= self.database[replica] && self.lasting != Some(Lasting::OffDatabase { replica })
    }

    pub(crate) fn to_cluster(&self, replica: usize, now: Time) -> Way {
        match self.lasting {
            Some(Lasting::OffCluster { replica: cut_off, .. }) if cut_off == replica => Way::Away,
            Some(Lasting::Pages { replica: paged }) if paged == replica => Way::Page,
            _ if now < self.cluster[replica] => Way::Away,
            _ if now < self.pages[replica] => Way::Page,
            _ => Way::Open,
        }
    }

    pub(crate) fn trouble(&self, tenant: usize, now: Time) -> Option<Trouble> {
        match self.lasting {
            Some(Lasting::Tenant { tenant: bad, trouble }) if bad == tenant => Some(trouble),
            _ => self.troubles[tenant].filter(|(until, _)| now < *until).map(|(_, trouble)| trouble),
        }
    }

    pub(crate) fn is_locked(&self, tenant: usize, now: Time) -> bool {
        self.trouble(tenant, now) == Some(Trouble::Locked)
    }

    /// Returns whether a statement that resigns one lease gets lost.
    pub(crate) fn loses_resignations(&self, replica: usize) -> bool {
        matches!(self.lasting, Some(Lasting::OffCluster { replica: bad, resigns: false }) if bad == replica)
    }

    /// Returns whether what becomes of this tenant's submissions depends on what lasts.
    pub(crate) fn depends(&self, tenant: usize) -> bool {
        matches!(self.lasting, Some(Lasting::Tenant { tenant: bad, .. }) if bad == tenant)
    }
}

impl Trouble {
    fn draw(rng: &mut Rng) -> Self {
        rng.pick(&[Self::Hangs, Self::Denies, Self::OverQuota, Self::Locked])
    }
}

impl World {
    /// Returns how long a write to the cluster for this submission hangs.
    pub(crate) fn hangs_until(&self, submission: usize) -> Time {
        let tenant = self.truths.submissions[submission].tenant;
        let hangs = self.links.trouble(tenant, self.now) == Some(Trouble::Hangs);
        if hangs { self.now + HANGS_FOR } else { 0 }
    }

    pub(crate) fn links_break(&mut self, longest: Time) {
        let until = self.now + self.rng.below(longest);
        let one = self.rng.chance(600).then(|| self.rng.below(self.replicas.len() as u64) as usize);
        let which = one.map_or_else(|| "every replica".to_owned(), |at| format!("replica {at}"));
        let (ways, count, what) = match self.rng.below(6) {
            0..2 => (&mut self.links.database, Count::DatabaseAway, "the database is away"),
            2..4 => (&mut self.links.cluster, Count::ClusterAway, "the API server is away"),
            4 => (&mut self.links.pages, Count::Pages, "a proxy answers for the API server"),
            _ => {
                let (tenant, trouble) = (self.rng.below(TENANTS) as usize, Trouble::draw(&mut self.rng));
                self.links.troubles[tenant] = Some((until, trouble));
                self.counts.add(Count::TenantTrouble);
                return self.say(|_| format!("the namespaces of tenant {tenant}: {trouble:?}"));
            }
        };
        match one {
            Some(at) => ways[at] = until,
            None => ways.fill(until),
        }
        self.counts.add(count);
        if one.is_some() && self.replicas.len() > 1 {
            self.counts.add(Count::OneCutOff);
        }
        self.say(|_| format!("{what} for {which}"));
    }

    /// Chooses what stays bad when all other faults end: a minority of the replicas, or one of the tenants.
    pub(crate) fn draw_what_lasts(&mut self) {
        let holder = self.store.leases.get(&LeaseName::Watch).map(|lease| lease.holder);
        let watching = self.replicas.iter().position(|replica| Some(replica.session) == holder);
        let any = self.rng.below(self.replicas.len() as u64) as usize;
        // The one that watches is the one that is missed.
        let replica = watching.filter(|_| self.rng.chance(600)).unwrap_or(any);
        let of_replica = self.replicas.len() > 1 && self.rng.chance(600);
        let tenant = self.rng.below(TENANTS) as usize;
        let lasting = match self.rng.below(5) {
            _ if !of_replica && self.rng.chance(600) => {
                Lasting::Tenant { tenant, trouble: Trouble::draw(&mut self.rng) }
            }
            _ if !of_replica => return,
            0 => Lasting::OffDatabase { replica },
            1 => Lasting::Stopped { replica },
            2 => Lasting::Pages { replica },
            _ => Lasting::OffCluster { replica, resigns: self.rng.chance(500) },
        };
        self.counts.add(match lasting {
            Lasting::OffCluster { resigns: true, .. } => Count::LastsOffCluster,
            Lasting::OffCluster { resigns: false, .. } => Count::LastsUnableToResign,
            Lasting::Pages { .. } => Count::LastsPages,
            Lasting::OffDatabase { .. } => Count::LastsOffDatabase,
            Lasting::Stopped { .. } => Count::LastsStopped,
            Lasting::Tenant { .. } => Count::LastsTenant,
        });
        self.links.lasting = Some(lasting);
        self.say(|_| format!("this lasts: {lasting:?}"));
        if let Lasting::Stopped { replica } = lasting {
            self.replicas[replica].paused_until = Time::MAX;
            for request in self.wire.iter_mut().filter(|request| request.replica == replica) {
                request.held_until = if self.rng.chance(500) { Time::MAX } else { request.held_until };
            }
        }
    }

    /// Ends what lasted: even what a stopped process was about to send arrives now.
    pub(crate) fn end_what_lasted(&mut self) {
        self.links.lasting = None;
        let now = self.now;
        for replica in &mut self.replicas {
            replica.paused_until = 0;
        }
        for request in &mut self.wire {
            request.held_until = request.held_until.min(now);
        }
    }
}
