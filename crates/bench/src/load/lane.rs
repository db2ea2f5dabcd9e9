//! A lane sends one request at a time: over an HTTP/1 connection of its own, or over a stream of an
//! HTTP/2 connection that lanes share.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Instant;

use tokio::sync::Mutex;
use tokio::time::Sleep;

use super::failure::LoadFailure;
use super::http1::Http1;
use super::http2::Http2;
use super::plan::{LoadPlan, PreparedRequest};
use super::recorder::MeasuredResponse;
use super::stream::{Endpoint, Stream};
use super::thread::Thread;
use crate::settings::Protocol;

/// The HTTP/2 connections that lanes share, one per server.
pub(crate) type Group = Rc<Vec<Mutex<Option<Http2>>>>;

/// Makes an empty group for `servers` servers.
pub(crate) fn group(servers: usize) -> Group {
    Rc::new((0..servers).map(|_| Mutex::new(None)).collect())
}

/// A lane.
pub(crate) struct Lane {
    thread: Rc<Thread>,
    /// HTTP/1 connections, by server.
    own: Vec<Option<Http1>>,
    /// The HTTP/2 connections last used, by server.
    seen: Vec<Option<Http2>>,
    group: Group,
    alarm: Pin<Box<Sleep>>,
}

impl Lane {
    /// Makes a lane without connections. Over HTTP/2 it uses those of `group`.
    pub(crate) fn new(thread: &Rc<Thread>, group: &Group) -> Self {
        let servers = thread.plan.endpoints.len();
        let timeout = thread.plan.settings.timeout;
        Self {
            thread: Rc::clone(thread),
            own: (0..servers).map(|_| None).collect(),
            seen: vec![None; servers],
            group: Rc::clone(group),
            alarm: Box::pin(tokio::time::sleep(timeout)),
        }
    }

    /// Closes its connections.
    pub(crate) fn close(&mut self) {
        self.own.iter_mut().for_each(|own| *own = None);
    }

    /// Sends a request, and reads its response.
    pub(crate) async fn ask(
        &mut self,
        ask: &PreparedRequest,
    ) -> Result<MeasuredResponse, LoadFailure> {
        let begun = Instant::now();
        let flight = &self.thread.in_flight;
        flight.set(flight.get() + 1);
        let result = match self.thread.plan.settings.protocol {
            Protocol::Http1 { .. } => self.ask_http1(ask, begun).await,
            Protocol::Http2 { .. } => self.ask_http2(ask, begun).await,
        };
        let flight = &self.thread.in_flight;
        flight.set(flight.get() - 1);
        result
    }

    /// Pipelines requests, and passes on their responses as they come. After a failure the
    /// remaining requests fail, too.
    pub(crate) async fn send_pipelined(
        &mut self,
        asks: &[&PreparedRequest],
        mut each: impl FnMut(&PreparedRequest, Result<MeasuredResponse, LoadFailure>),
    ) {
        let begun = Instant::now();
        let mut failed = None;
        let (thread, count) = (Rc::clone(&self.thread), asks.len() as u64);
        thread.in_flight.set(thread.in_flight.get() + count);
        let Some(first) = asks.first() else {
            return;
        };
        for (ask, nth) in asks.iter().zip(0..) {
            let result = match &failed {
                Some(failure) => Err(LoadFailure::clone(failure)),
                None if nth == 0 => {
                    let all = asks.iter().skip(1).filter(|ask| ask.endpoint == first.endpoint);
                    self.exchange(ask, all.copied(), begun).await
                }
                None => self.answer(ask, begun).await,
            };
            failed = result.as_ref().err().cloned();
            thread.in_flight.set(thread.in_flight.get() - 1);
            each(ask, result);
        }
        self.drop_if_over(first.endpoint);
    }

    async fn ask_http1(
        &mut self,
        ask: &PreparedRequest,
        begun: Instant,
    ) -> Result<MeasuredResponse, LoadFailure> {
        let result = self.exchange(ask, std::iter::empty(), begun).await;
        self.drop_if_over(ask.endpoint);
        result
    }

    /// Sends `ask` and `more`, and reads the response to `ask`. It sends all once more if the
    /// server may have closed the connection before it read them.
    async fn exchange<'a>(
        &mut self,
        ask: &'a PreparedRequest,
        more: impl Iterator<Item = &'a PreparedRequest> + Clone,
        begun: Instant,
    ) -> Result<MeasuredResponse, LoadFailure> {
        let thread = Rc::clone(&self.thread);
        let condition = |ask: &PreparedRequest| thread.condition(ask.number);
        loop {
            let connection = match self.own.get_mut(ask.endpoint).and_then(Option::take) {
                Some(connection) => connection,
                None => self.open(ask.endpoint, begun).await?,
            };
            let connection = self.put(ask.endpoint, connection)?;
            connection.queue(ask, condition(ask).as_ref());
            for next in more.clone() {
                connection.queue(next, condition(next).as_ref());
            }
            let stale = connection.may_be_stale();
            let result = self.answer(ask, begun).await;
            match &result {
                Err(LoadFailure::Closed | LoadFailure::Broken(_)) if stale => {}
                _ => return result,
            }
        }
    }

    fn put(&mut self, endpoint: usize, connection: Http1) -> Result<&mut Http1, LoadFailure> {
        let place = self.own.get_mut(endpoint);
        let place = place.ok_or_else(|| LoadFailure::Connect("no such server".to_owned()))?;
        Ok(place.insert(connection))
    }

    /// Reads the next response. A failed connection is dropped.
    async fn answer(
        &mut self,
        ask: &PreparedRequest,
        begun: Instant,
    ) -> Result<MeasuredResponse, LoadFailure> {
        let limit = begun + self.thread.plan.settings.timeout;
        let Some(connection) = self.own.get_mut(ask.endpoint).and_then(Option::as_mut) else {
            return Err(LoadFailure::Closed);
        };
        let (alarm, scratch) = (&mut self.alarm, &self.thread.scratch);
        let result = poll_fn(|cx| match connection.poll_answer(cx, scratch) {
            Poll::Pending if is_over(alarm.as_mut(), limit, cx) => {
                Poll::Ready(Err(LoadFailure::Timeout))
            }
            other => other,
        });
        let result = result.await;
        let moved = connection.take_moved();
        let when = result.as_ref().map_or_else(|_| Instant::now(), |answer| answer.last_byte);
        self.thread.moved(when, moved);
        if result.is_err()
            && let Some(own) = self.own.get_mut(ask.endpoint)
        {
            *own = None;
        }
        result
    }

    fn drop_if_over(&mut self, endpoint: usize) {
        if let Some(own) = self.own.get_mut(endpoint)
            && own.as_ref().is_some_and(|connection| !connection.may_go_on())
        {
            *own = None;
        }
    }

    async fn open(&mut self, endpoint: usize, begun: Instant) -> Result<Http1, LoadFailure> {
        let limit = begun + self.thread.plan.settings.timeout;
        let stream = connect(&self.thread, endpoint, self.alarm.as_mut(), limit).await?;
        let LoadPlan { head_limits, settings, .. } = &*self.thread.plan;
        Ok(Http1::new(stream, *head_limits).with_validators(settings.conditional))
    }

    async fn ask_http2(
        &mut self,
        ask: &PreparedRequest,
        begun: Instant,
    ) -> Result<MeasuredResponse, LoadFailure> {
        let limit = begun + self.thread.plan.settings.timeout;
        loop {
            let known = self.seen.get(ask.endpoint).and_then(Clone::clone);
            let reused = known.is_some();
            let connection = match known {
                Some(connection) => connection,
                None => self.join(ask.endpoint, limit).await?,
            };
            let result = {
                let condition = self.thread.condition(ask.number);
                let exchange = connection.ask(ask.head(condition.as_ref()), ask.body.clone());
                within(self.alarm.as_mut(), limit, exchange).await.and_then(|result| result)
            };
            let when = result.as_ref().map_or_else(|_| Instant::now(), |answer| answer.last_byte);
            self.thread.moved(when, connection.take_moved());
            match &result {
                Ok(_) | Err(LoadFailure::Timeout) => return result,
                Err(failure) => {
                    if let Some(seen) = self.seen.get_mut(ask.endpoint) {
                        *seen = None;
                    }
                    if !reused || !matches!(failure, LoadFailure::Closed | LoadFailure::Broken(_)) {
                        return result;
                    }
                }
            }
        }
    }

    /// Returns the group's connection to a server, opened anew if it has ended.
    async fn join(&mut self, endpoint: usize, limit: Instant) -> Result<Http2, LoadFailure> {
        let Protocol::Http2 { streams } = self.thread.plan.settings.protocol else {
            return Err(LoadFailure::Connect("not HTTP/2".to_owned()));
        };
        let group = Rc::clone(&self.group);
        let Some(place) = group.get(endpoint) else {
            return Err(LoadFailure::Connect("no such server".to_owned()));
        };
        let mut shared = within(self.alarm.as_mut(), limit, place.lock()).await?;
        let connection = match shared.as_ref().filter(|shared| !shared.is_over()) {
            Some(connection) => connection.clone(),
            None => {
                let stream = connect(&self.thread, endpoint, self.alarm.as_mut(), limit).await?;
                let begun = Http2::new(stream, streams, self.thread.plan.settings.conditional);
                let begun = within(self.alarm.as_mut(), limit, begun).await??;
                shared.insert(begun).clone()
            }
        };
        if let Some(seen) = self.seen.get_mut(endpoint) {
            *seen = Some(connection.clone());
        }
        Ok(connection)
    }
}

/// Opens a connection and counts it.
async fn connect(
    thread: &Thread,
    endpoint: usize,
    alarm: Pin<&mut Sleep>,
    limit: Instant,
) -> Result<Stream, LoadFailure> {
    let endpoint: Option<&Endpoint> = thread.plan.endpoints.get(endpoint);
    let endpoint = endpoint.ok_or_else(|| LoadFailure::Connect("no such server".to_owned()))?;
    let (stream, opened) = within(alarm, limit, endpoint.connect()).await??;
    thread.opened(&opened);
    Ok(stream)
}

/// The output of `future`, if it comes before `limit`.
async fn within<F: Future>(
    mut alarm: Pin<&mut Sleep>,
    limit: Instant,
    future: F,
) -> Result<F::Output, LoadFailure> {
    let mut future = pin!(future);
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Ok(output)),
        Poll::Pending if is_over(alarm.as_mut(), limit, cx) => {
            Poll::Ready(Err(LoadFailure::Timeout))
        }
        Poll::Pending => Poll::Pending,
    })
    .await
}

/// Returns true if `limit` has passed; otherwise the alarm wakes the task then. The alarm is reset
/// only when it fires, so that a request costs no timer.
fn is_over(mut alarm: Pin<&mut Sleep>, limit: Instant, cx: &mut Context<'_>) -> bool {
    while alarm.as_mut().poll(cx).is_ready() {
        if Instant::now() >= limit {
            return true;
        }
        alarm.as_mut().reset(limit.into());
    }
    false
}
