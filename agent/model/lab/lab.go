// Package lab is a deterministic model server: OpenAI's chat completions and
// completions, and Ollama's own protocol, with scripted answers, latency and
// faults, and a ledger of every request. Tests compare what was recorded with
// that ledger.
//
// [New] makes a [Server], which is an [http.Handler]:
//
//	POST /v1/chat/completions   a reply, or a fault
//	POST /v1/completions        likewise
//	POST /api/chat              likewise, as Ollama gives it
//	GET  /v1/models             the models that it has
//	GET  /api/tags              likewise
//	GET  /ledger                one [Entry] a line, in order of arrival
//	GET  /metrics               a [Gauge]
//
// What a request gets is a function of the script, the call id
// (X-Client-Request-Id, else a hash of the body), how often that id was seen,
// and the request itself; never of time or of other requests. The exception is
// a [Capacity], which makes some wait or come again.
package lab

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Server is the lab. It is safe for concurrent use.
type Server struct {
	script Script
	mux    *http.ServeMux
	ledger ledger
	slots  *slots
	closed chan struct{} // closed by Close: ends what hangs
	once   sync.Once
}

// New checks the script and makes a lab.
func New(script Script) (*Server, error) {
	script.applyDefaults()
	if err := script.validate(); err != nil {
		return nil, err
	}
	s := &Server{script: script, mux: http.NewServeMux(), slots: newSlots(script.Capacity), closed: make(chan struct{})}
	s.mux.HandleFunc("POST /v1/chat/completions", s.serve(chatProtocol()))
	s.mux.HandleFunc("POST /v1/completions", s.serve(textProtocol()))
	s.mux.HandleFunc("POST /api/chat", s.serve(ollamaProtocol()))
	s.mux.HandleFunc("GET /v1/models", s.serveModels)
	s.mux.HandleFunc("GET /api/tags", s.serveTags)
	s.mux.HandleFunc("GET /ledger", s.serveLedger)
	s.mux.HandleFunc("GET /metrics", s.serveMetrics)
	return s, nil
}

// Close ends the requests that hang, so that an [http.Server] can shut down.
func (s *Server) Close() { s.once.Do(func() { close(s.closed) }) }

// ServeHTTP serves the paths that the package names.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// protocol is one way of asking and answering. The rest of the lab speaks chat
// completions.
type protocol struct {
	read   func(body []byte) (*request, error)
	write  func(s *Script, c completion) any // the body of an answer
	refuse func(code, message string) any    // and of an error
}

// exchange is a request at hand.
type exchange struct {
	protocol
	w     http.ResponseWriter
	r     *http.Request
	entry *Entry
}

// serve books every request, whatever becomes of it.
func (s *Server) serve(p protocol) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { s.handle(&exchange{protocol: p, w: w, r: r}) }
}

func (s *Server) handle(x *exchange) {
	w, r := x.w, x.r
	e := s.ledger.arrive()
	x.entry = e
	defer func() {
		e.ClientGone = e.ClientGone || r.Context().Err() != nil
		s.ledger.leave(e)
	}()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		e.Fault = "client_cut"
		return // the client broke off: there is nobody to answer
	}
	sum := sha256.Sum256(body)
	e.RequestSHA256 = hex.EncodeToString(sum[:])
	e.CallID = r.Header.Get("X-Client-Request-Id")
	if e.CallID == "" {
		e.CallID = "sha256-" + e.RequestSHA256[:32]
	}
	e.Seen = s.ledger.see(e.CallID)
	e.RequestID = "req_" + strconv.FormatUint(s.script.draws("request", e.CallID, e.Seen).Uint64(), 36)
	w.Header().Set("X-Request-Id", e.RequestID)

	req, err := x.read(body)
	if err != nil {
		s.refuse(x, http.StatusBadRequest, "invalid_request_error", "the request is not JSON: "+err.Error())
		return
	}
	e.Model, e.Messages = req.Model, len(req.Messages)
	if status, code, message := s.check(r, req); status != 0 {
		s.refuse(x, status, code, message)
		return
	}
	s.reply(x, req)
}

// check refuses what a strict server refuses; status 0 lets the request pass.
func (s *Server) check(r *http.Request, req *request) (status int, code, message string) {
	key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	switch {
	case s.script.APIKey != "" && key != s.script.APIKey:
		return http.StatusUnauthorized, "invalid_api_key", "incorrect API key provided: " + key
	case len(s.script.Models) > 0 && !slices.Contains(s.script.Models, req.Model):
		return http.StatusNotFound, "model_not_found", fmt.Sprintf("the model %q does not exist", req.Model)
	case req.Stream:
		return http.StatusBadRequest, "unsupported", "streaming is not supported"
	case len(req.Messages) == 0:
		return http.StatusBadRequest, "invalid_request_error", "messages is empty"
	}
	if status, code, message = s.checkTools(req); status != 0 {
		return status, code, message
	}
	if status, code, message = s.checkLength(req); status != 0 {
		return status, code, message
	}
	return s.checkResults(req)
}

// checkResults wants each tool result to name a call of the reply before it,
// and each call to have its result.
func (s *Server) checkResults(req *request) (status int, code, message string) {
	open := map[string]bool{}
	for i := range req.Messages {
		m := &req.Messages[i]
		switch {
		case m.Role == "tool" && !open[m.ToolCallID]:
			return http.StatusBadRequest, "invalid_request_error",
				fmt.Sprintf("messages[%d]: tool_call_id %q answers no open call", i, m.ToolCallID)
		case m.Role == "tool":
			delete(open, m.ToolCallID)
		case len(open) > 0:
			return http.StatusBadRequest, "invalid_request_error",
				fmt.Sprintf("messages[%d]: %d tool calls before it have no result", i, len(open))
		}
		for _, c := range m.ToolCalls {
			open[c.ID] = true
			if !json.Valid([]byte(c.Function.Arguments)) {
				return http.StatusBadRequest, "invalid_request_error", fmt.Sprintf("messages[%d]: the arguments of a tool call are not JSON", i)
			}
		}
	}
	if len(open) > 0 {
		return http.StatusBadRequest, "invalid_request_error", fmt.Sprintf("%d tool calls have no result", len(open))
	}
	return 0, "", ""
}

// reply waits, then answers or strikes.
func (s *Server) reply(x *exchange, req *request) {
	e := x.entry
	nth, ok := s.slots.enter(x.r, s.closed, e.CallID, e.Seen)
	if !ok {
		s.refuseBeyond(x)
		return
	}
	leave := sync.OnceFunc(s.slots.leave)
	defer leave()
	fault := s.script.fault(e.CallID, nth)
	if fault == nil {
		fault = new(Fault)
	}
	e.Fault = fault.Kind
	s.wait(x.r, s.script.latency(e.CallID, nth))
	if fault.Kind != FaultHang && fault.Kind != FaultStall {
		leave() // before the client can send its next request
	}
	switch fault.Kind {
	case FaultStatus:
		if fault.RetryAfter > 0 {
			x.w.Header().Set("Retry-After", strconv.Itoa(fault.RetryAfter))
		}
		s.refuse(x, fault.Status, "scripted", "a scripted fault")
		return
	case FaultHang:
		s.wait(x.r, forever)
	}
	c := s.script.answer(req, e.CallID, nth)
	if fault.Kind == FaultArguments {
		c.breakArguments()
	}
	e.book(c)
	if s.script.Server == ServerOpenRouter {
		e.CostNanoUSD = c.Usage.nanoUSD()
	}
	s.send(x, c, fault)
}

// forever is longer than any client waits.
const forever = 1 << 62 * time.Nanosecond

// wait lets d pass. When the client leaves or the lab closes meanwhile, it
// ends the request without an answer.
func (s *Server) wait(r *http.Request, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return
	case <-r.Context().Done():
	case <-s.closed:
	}
	panic(http.ErrAbortHandler) // net/http closes the connection and says nothing
}

// book copies what the answer says into the entry.
func (e *Entry) book(c completion) {
	m := c.Choices[0].Message
	e.Usage, e.Answer, e.Reasoning = c.Usage, *m.Content, m.ReasoningContent
	e.FinishReason = c.Choices[0].FinishReason
	for _, call := range m.ToolCalls {
		e.ToolCalls = append(e.ToolCalls, ToolCall{ID: call.ID, Name: call.Function.Name, Arguments: call.Function.Arguments})
	}
}

// send writes the answer, or what a fault makes of it.
func (s *Server) send(x *exchange, c completion, fault *Fault) {
	c.Created = time.Now().Unix()
	x.entry.Status = http.StatusOK
	switch fault.Kind {
	case FaultReset:
		x.entry.Status = 0
		s.ledger.publish(x.entry)
		reset(x.w)
		return
	case FaultNoUsage:
		c.Usage = nil
	case FaultEmptyChoices:
		c.Choices = []choice{}
	}
	body := encode(x.write(&s.script, c))
	x.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	switch fault.Kind {
	case FaultMalformed:
		copy(body[len(body)-2:], ";}")
	case FaultCut: // net/http ends the connection when less comes than was promised
		body = body[:len(body)/2]
	case FaultStall:
		s.write(x, nil)
		s.wait(x.r, forever)
	case FaultDrip:
		s.drip(x, body, time.Duration(fault.PauseMS)*time.Millisecond)
		return
	}
	s.write(x, body)
}

// drip writes a body in pieces.
func (s *Server) drip(x *exchange, body []byte, pause time.Duration) {
	const pieces = 20
	for piece := range slices.Chunk(body, max(len(body)/pieces, 1)) {
		s.wait(x.r, pause)
		s.write(x, piece)
	}
}

// write sends a body that is JSON, or should be, or a piece of it. The entry is
// in the ledger before the client can read the answer.
func (s *Server) write(x *exchange, body []byte) {
	s.ledger.publish(x.entry)
	if x.w.Header().Get("Content-Type") == "" {
		x.w.Header().Set("Content-Type", "application/json")
		x.w.WriteHeader(x.entry.Status)
	}
	_, err := x.w.Write(body)
	if flushErr := http.NewResponseController(x.w).Flush(); err != nil || flushErr != nil {
		x.entry.ClientGone = true
	}
}

func (s *Server) refuse(x *exchange, status int, code, message string) {
	x.entry.Status = status
	s.write(x, encode(x.refuse(code, message)))
}

func (s *Server) serveModels(w http.ResponseWriter, _ *http.Request) {
	type entry struct {
		ID     string `json:"id"`
		Object string `json:"object"`
	}
	list := struct {
		Object string  `json:"object"`
		Data   []entry `json:"data"`
	}{Object: "list", Data: []entry{}}
	for _, name := range s.script.Models {
		list.Data = append(list.Data, entry{ID: name, Object: "model"})
	}
	writeJSON(w, list)
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(encode(v), '\n')) // the client may have gone
}

func encode(v any) []byte {
	body, err := json.Marshal(v)
	if err != nil {
		panic("lab: encoding a response: " + err.Error())
	}
	return body
}

// reset ends the connection with a TCP reset, where it is a TCP connection.
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
