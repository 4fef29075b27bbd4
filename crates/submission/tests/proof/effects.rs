//! Carries out the engine's effects in the model of the database and of the cluster.

use sparkgate_submission::State;

use crate::{
    bounds::Seeded,
    cluster::UNOWNED,
    machines::{Ask, Reply},
    model::Gateway,
    store::{Claim, Move, Moved, Part, Rules},
    truth::Invariant,
    view::{Body, View},
    world::{Late, World},
};

impl Gateway {
    /// Carries out a request, and returns its result.
    pub(crate) fn carry_out(&self, world: &mut World, request: Late) -> Reply {
        self.under_claim(world, request, |world, request| self.effect(world, request))
    }

    /// Carries out a request, or a part of it, which writes nothing under an old claim.
    fn under_claim<T>(&self, world: &mut World, request: Late, act: impl FnOnce(&mut World, Late) -> T) -> T {
        if request.claim != Some(Claim::Old) {
            return act(world, request);
        }
        let before = world.row;
        let claim = if self.has(Seeded::NoEpoch) { Claim::Current } else { Claim::Old };
        let done = act(world, Late { claim: Some(claim), ..request });
        if world.row != before {
            world.truth.breaks(Invariant::OldClaimsWriteNothing);
        }
        done
    }

    fn effect(&self, world: &mut World, request: Late) -> Reply {
        let Late { attempt, name, claim, ask } = request;
        match ask {
            Ask::Read => Reply::Row(world.row.map(|row| row.view())),
            Ask::LookUp => {
                Reply::Found(world.cluster.at(name).pod.map(|pod| self.seen(pod.view(name, attempt, false))))
            }
            Ask::CreateBefore => {
                let object = &mut world.cluster.at_mut(name).before;
                if *object == 0 {
                    *object = UNOWNED;
                }
                Reply::Done
            }
            // Quotas are asked before the API server says that the pod exists.
            Ask::CreatePod if self.bounds.quota && world.cluster.is_full() => Reply::NoRoom,
            Ask::CreatePod => {
                let Some(pod) = world.cluster.create(name, true, Body::Waiting) else { return Reply::Taken };
                if self.has(Seeded::ConfigMapFirst) {
                    world.cluster.create_beside(name, self.bounds.beside - 1, pod.uid);
                }
                Reply::Created(pod.view(name, attempt, false))
            }
            Ask::RecordPod(uid) => {
                let state =
                    world.row.as_mut().and_then(|row| row.record_pod(attempt, claim.unwrap_or(Claim::Old), uid));
                Reply::Recorded(if self.has(Seeded::KillUnseen) { state.map(|_| State::Launching) } else { state })
            }
            Ask::HandOver(uid) => {
                world.check_owner(name, uid);
                if world.cluster.hand_over(name, uid) { Reply::Done } else { Reply::NotFound }
            }
            Ask::CreateBeside(place, uid) => {
                world.check_owner(name, uid);
                if world.cluster.create_beside(name, place, uid) { Reply::Done } else { Reply::AlreadyExists }
            }
            Ask::DeleteBefore => {
                world.cluster.at_mut(name).before = 0;
                Reply::Done
            }
            Ask::Delete(uid) => {
                world.check_owner(name, uid);
                world.cluster.delete(name, uid);
                Reply::Done
            }
            Ask::RemoveFinalizer(uid) => {
                world.check_owner(name, uid);
                world.check_finalizer(name, uid);
                world.cluster.remove_finalizer(name, uid);
                Reply::Done
            }
            Ask::RestoreLabels(uid) => {
                world.check_owner(name, uid);
                if claim.is_some() {
                    world.cluster.restore(name, uid);
                }
                Reply::Done
            }
            Ask::Advance(change, uid) => self.moved(self.advance(world, Move { attempt, claim, change, uid })),
            Ask::NoteWaiting | Ask::Settle { .. } => Reply::Done,
        }
    }

    /// Carries out the next statement of a write of an end. Returns its result; the next part, if another one follows.
    pub(crate) fn carry_out_part(&self, world: &mut World, request: Late, part: Part) -> Result<Reply, Part> {
        let Ask::Advance(change, uid) = request.ask else { return Ok(self.carry_out(world, request)) };
        let moved = self.under_claim(world, request, |world, Late { attempt, claim, .. }| {
            self.advance_by(world, Move { attempt, claim, change, uid }, part)
        });
        match (moved, part) {
            (Some(moved), _) => Ok(self.moved(moved)),
            (None, Part::Retry) => Err(Part::State),
            (None, Part::State | Part::Restart) => Err(Part::Restart),
        }
    }

    fn moved(&self, moved: bool) -> Reply {
        Reply::Moved(moved || self.has(Seeded::RefusalIsDone))
    }

    /// Carries out the statements of a write one after the other.
    fn advance(&self, world: &mut World, write: Move) -> bool {
        [Part::Retry, Part::State, Part::Restart]
            .into_iter()
            .find_map(|part| self.advance_by(world, write, part))
            .unwrap_or(false)
    }

    fn advance_by(&self, world: &mut World, write: Move, part: Part) -> Option<bool> {
        let Some(mut row) = world.row else { return Some(false) };
        let before = row;
        let rules = Rules { most: self.bounds.attempts, restart: self.bounds.restart, seeded: self.seeded };
        let moved = row.advance(write, part, rules)?;
        if moved == Moved::No {
            return Some(false);
        }
        world.row = Some(row);
        world.wrote(write, before.state, before.attempt);
        if moved == Moved::Retried {
            if before.state == State::Killing {
                world.truth.breaks(Invariant::KillStartsNothing);
            }
            world.new_number();
        }
        Some(true)
    }

    /// Returns a pod as the gateway sees it.
    pub(crate) fn seen(&self, view: View) -> View {
        View { genuine: view.genuine || (view.labelled && self.has(Seeded::BelievesLabels)), ..view }
    }

    /// Returns the result of an effect that was not answered.
    pub(crate) fn unanswered(&self, ask: Ask) -> Reply {
        match ask {
            Ask::LookUp if self.has(Seeded::LostReplyIsAbsence) => Reply::Found(None),
            Ask::CreateBefore | Ask::CreatePod | Ask::CreateBeside(..) if self.has(Seeded::LostReplyIsRefusal) => {
                Reply::AlreadyExists
            }
            _ => Reply::Unknown,
        }
    }
}
