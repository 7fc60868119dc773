package endpoint

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/talaria-run/talaria/agent/model"
)

// refusal is what an HTTP error or an error member says.
type refusal struct {
	message string
	code    string // code and type, as far as they are given
}

// Texts by which servers of this dialect say what a status alone does not.
const (
	contextTexts = "context_length|context length|context window|context size|exceed_context|maximum context|prompt is too long|input is too long|too many tokens|input token count"
	billingTexts = "insufficient_quota|current quota|billing|credit balance|insufficient credit|insufficient balance"
	modelTexts   = "model_not_found|no such model|unknown model|invalid model|model not found|model does not exist"
	filterTexts  = "content_filter|content_policy|content management policy|flagged"
	againTexts   = "try again|resets|per minute"
	busyTexts    = "overloaded|over capacity|at capacity|no available"
)

func (r refusal) says(texts string) bool {
	all := strings.ToLower(r.code + " " + r.message)
	for text := range strings.SplitSeq(texts, "|") {
		if strings.Contains(all, text) {
			return true
		}
	}
	return false
}

func (r refusal) saysModel() bool {
	if r.says(modelTexts) {
		return true
	}
	all := strings.ToLower(r.message)
	return strings.Contains(all, "model") &&
		(strings.Contains(all, "does not exist") || strings.Contains(all, "not found"))
}

// classify tells what kind of failure an HTTP status is, and what helps: to
// try again, to give up this call, or (fatal) to give up every call.
func classify(status int, r refusal) *model.Error {
	e := &model.Error{Status: status}
	switch {
	case status == http.StatusPaymentRequired && r.says(againTexts):
		e.Class, e.Retryable = model.ClassRateLimit, true
	case status == http.StatusPaymentRequired,
		(status == http.StatusTooManyRequests || status == http.StatusForbidden) && r.says(billingTexts):
		e.Class, e.Fatal = model.ClassBilling, true
	case status == http.StatusUnauthorized:
		e.Class, e.Fatal = model.ClassAuth, true
	case status == http.StatusForbidden:
		e.Class, e.Fatal = model.ClassAuth, true
	case status == http.StatusTooManyRequests && r.says(busyTexts):
		e.Class, e.Retryable = model.ClassOverloaded, true
	case status == http.StatusTooManyRequests:
		e.Class, e.Retryable = model.ClassRateLimit, true
	case status == http.StatusRequestTimeout:
		e.Class, e.Retryable = model.ClassTimeout, true
	case status == http.StatusRequestEntityTooLarge, status >= 400 && r.says(contextTexts):
		e.Class = model.ClassContextOverflow
	case status == http.StatusNotFound, status >= 400 && status < 500 && r.saysModel():
		e.Class, e.Fatal = model.ClassModelNotFound, true
	case status == http.StatusServiceUnavailable, status == 529:
		e.Class, e.Retryable = model.ClassOverloaded, true
	case status >= 500:
		e.Class, e.Retryable = model.ClassServer, true
	case status >= 400:
		e.Class = model.ClassFormat
	default: // a redirect: the address is wrong
		e.Class, e.Fatal = model.ClassFormat, true
	}
	return e
}

// maxErrorBody bounds what is read of an error's body, in bytes.
const maxErrorBody = 64 << 10

// promptFiltered tells whether the server's content filter refused this one
// prompt, which is how the policy's episode ends, not a failure of the server.
func promptFiltered(status int, r refusal) bool {
	return (status == http.StatusBadRequest || status == http.StatusForbidden) && r.says(filterTexts)
}

// Refused is the failure that an answer without success tells of, or filtered:
// the server's content filter refused this one prompt, which is how the
// policy's episode ends.
func (e *Endpoint) Refused(a Answer) (failed *model.Error, filtered bool) {
	r := readRefusal(a.Body[:min(len(a.Body), maxErrorBody)])
	if promptFiltered(a.Status, r) {
		return nil, true
	}
	return e.httpError(a.Status, a.Header, r), false
}

// Unreadable is a success that cannot be read: the model has replied, and may
// be paid for it.
func (e *Endpoint) Unreadable(a Answer, err error) *model.Error {
	if strings.HasPrefix(strings.TrimSpace(string(a.Body[:min(len(a.Body), 64)])), "<") {
		err = fmt.Errorf("%s instead of JSON: does base_url point at the API?", e.Short(pageText(string(a.Body))))
	}
	return &model.Error{Class: model.ClassBadResponse, Status: a.Status, Retryable: true, Sent: true, Err: fmt.Errorf("reading the reply: %w", err)}
}

// Inside is an error that came with status 200, as gateways send it: raw is
// the body's error member.
func (e *Endpoint) Inside(raw []byte) *model.Error {
	r, _ := readErrorMember(raw)
	status := http.StatusBadGateway
	for word := range strings.FieldsSeq(r.code) {
		if n, err := strconv.Atoi(word); err == nil && n >= 400 && n < 600 {
			status = n
		}
	}
	failed := classify(status, r)
	failed.Err = errors.New(cmp.Or(e.Short(r.message), "an error without a message"))
	return failed
}

// BrokeOff is a reply whose finish reason says that the server gave up.
func (e *Endpoint) BrokeOff(a Answer, reason string) *model.Error {
	err := fmt.Errorf("the server broke off with finish reason %q", e.Short(reason))
	return &model.Error{Class: model.ClassServer, Status: a.Status, Retryable: true, Sent: true, Err: err}
}

// httpError is the failure that an HTTP status and its body tell of.
func (e *Endpoint) httpError(status int, h http.Header, r refusal) *model.Error {
	failed := classify(status, r)
	failed.RetryAfter = model.RetryAfter(h, time.Now())
	text := e.Short(r.message)
	if location := h.Get("Location"); status < 400 && location != "" {
		text = "redirects to " + e.Short(location) + "; set base_url to where the API is"
	}
	if text == "" {
		text = strings.ToLower(http.StatusText(status))
	}
	failed.Err = errors.New(text)
	return failed
}

// readRefusal finds the message in the shapes that servers and proxies use:
// {"error": {"message", "code", "type"}}, {"error": "text"}, {"message"},
// {"detail"}, the title of an HTML page, or plain text.
func readRefusal(body []byte) refusal {
	var doc struct {
		Error   json.RawMessage `json:"error"`
		Message json.RawMessage `json:"message"`
		Detail  json.RawMessage `json:"detail"`
		Code    any             `json:"code"`
		Type    any             `json:"type"`
	}
	if json.Unmarshal(body, &doc) != nil {
		return refusal{message: pageText(string(body))}
	}
	if r, ok := readErrorMember(doc.Error); ok {
		return r
	}
	for _, text := range []json.RawMessage{doc.Message, doc.Detail} {
		if len(text) > 0 {
			return refusal{message: rawText(text), code: codeText(doc.Type) + " " + codeText(doc.Code)}
		}
	}
	return refusal{message: string(body)}
}

// readErrorMember reads an error member, an object or a text, and what an
// aggregator's upstream said, where the member has that.
func readErrorMember(raw []byte) (refusal, bool) {
	if len(raw) == 0 || string(raw) == "null" {
		return refusal{}, false
	}
	var e struct {
		Message  json.RawMessage `json:"message"`
		Code     any             `json:"code"`
		Type     any             `json:"type"`
		Metadata json.RawMessage `json:"metadata"`
	}
	if json.Unmarshal(raw, &e) != nil || len(e.Message) == 0 {
		return refusal{message: rawText(raw)}, true
	}
	message := rawText(e.Message)
	var upstream struct {
		Raw json.RawMessage `json:"raw"`
	}
	if json.Unmarshal(e.Metadata, &upstream) == nil && len(upstream.Raw) > 0 {
		message += ": " + rawText(upstream.Raw)
	}
	return refusal{message: message, code: codeText(e.Type) + " " + codeText(e.Code)}, true
}

func codeText(code any) string {
	switch code := code.(type) {
	case string:
		return code
	case float64:
		return strconv.FormatFloat(code, 'f', -1, 64)
	}
	return ""
}

func rawText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// pageText is the title of an HTML page, or the text as it is.
func pageText(body string) string {
	body = strings.TrimSpace(body)
	if !strings.HasPrefix(body, "<") {
		return body
	}
	_, rest, found := strings.Cut(body, "<title>")
	title, _, closed := strings.Cut(rest, "</title>")
	if !found || !closed {
		return "an HTML page"
	}
	return "an HTML page: " + title
}

// maxErrorText is the longest error text, in bytes.
const maxErrorText = 300

// Short makes a server's text fit for a log line and a row: one line, bounded,
// printable, without the key.
func (e *Endpoint) Short(text string) string {
	if e.key != "" {
		text = strings.ReplaceAll(text, e.key, "[key]")
	}
	text = strings.ToValidUTF8(text[:min(len(text), 16*maxErrorText)], "")
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
	if len(text) > maxErrorText {
		text = strings.ToValidUTF8(text[:maxErrorText], "") + "…"
	}
	return text
}
