package model

import (
	"time"
)

// rates are the requests and tokens per minute that an endpoint bears.
type rates struct {
	requests, tokens bucket
	reply            float64 // tokens of a reply, on average lately
}

func newRates(o LimiterOptions) rates {
	return rates{
		requests: newBucket(float64(o.RequestsPerMinute)),
		tokens:   newBucket(float64(o.TokensPerMinute)),
		reply:    firstReply,
	}
}

const (
	firstReply    = 256 // tokens that a reply is taken to have before one has come
	bytesPerToken = 4   // of a prompt, about
)

// estimate is how many tokens a request will take, 0 where nobody asks. What
// it takes in truth is booked when it has ended.
func (r *rates) estimate(req *Request) int64 {
	if r.tokens.perSecond == 0 {
		return 0
	}
	reply := int64(r.reply)
	if most := MaxOutput(&req.Sampling); most > 0 {
		reply = min(reply, most)
	}
	return promptBytes(req)/bytesPerToken + reply
}

// wait is how long a request has to wait for what was spent before it.
func (r *rates) wait(now time.Time, tokens int64) time.Duration {
	return max(r.requests.wait(now, 1), r.tokens.wait(now, float64(tokens)))
}

func (r *rates) take(now time.Time, tokens int64) {
	r.requests.take(now, 1)
	r.tokens.take(now, float64(tokens))
}

// settle books what a request took beyond its estimate.
func (r *rates) settle(now time.Time, estimated int64, end result) {
	if end.outcome == unsent {
		r.requests.take(now, -1)
		r.tokens.take(now, -float64(estimated))
		return
	}
	if r.tokens.perSecond == 0 || end.outcome != served || end.tokens == 0 {
		return
	}
	r.tokens.take(now, float64(end.tokens-estimated))
	r.reply += (float64(end.output) - r.reply) / 8
}

// bucket fills at a steady rate and holds what comes in a second, so that what
// is allowed a minute is spread over it. It may be overdrawn: by what a request
// took beyond its estimate, and by a request larger than the bucket. The zero
// bucket bounds nothing.
type bucket struct {
	perSecond, size float64
	level           float64 // at since
	since           time.Time
}

func newBucket(perMinute float64) bucket {
	size := max(perMinute/60, 1)
	return bucket{perSecond: perMinute / 60, size: size, level: size}
}

// wait is how long until n can be taken.
func (b *bucket) wait(now time.Time, n float64) time.Duration {
	if b.perSecond == 0 {
		return 0
	}
	missing := min(n, b.size) - b.at(now)
	if missing <= 0 {
		return 0
	}
	return time.Duration(missing/b.perSecond*float64(time.Second)) + 1 // never too short by rounding
}

func (b *bucket) take(now time.Time, n float64) {
	if b.perSecond == 0 {
		return
	}
	b.level, b.since = b.at(now)-n, now
}

func (b *bucket) at(now time.Time) float64 {
	if b.since.IsZero() {
		return b.level
	}
	return min(b.size, b.level+now.Sub(b.since).Seconds()*b.perSecond)
}
