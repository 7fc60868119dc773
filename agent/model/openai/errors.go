package openai

import (
	"encoding/json"
	"errors"
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

// httpError is the failure that an HTTP status and its body tell of.
func (c *Client) httpError(status int, h http.Header, r refusal) *model.Error {
	e := classify(status, r)
	e.RetryAfter = model.RetryAfter(h, time.Now())
	text := c.short(r.message)
	if location := h.Get("Location"); status < 400 && location != "" {
		text = "redirects to " + c.short(location) + "; set base_url to where the API is"
	}
	if text == "" {
		text = strings.ToLower(http.StatusText(status))
	}
	e.Err = errors.New(text)
	return e
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

// short makes a server's text fit for a log line and a row: one line, bounded,
// printable, without the key.
func (c *Client) short(text string) string {
	if c.key != "" {
		text = strings.ReplaceAll(text, c.key, "[key]")
	}
	text = strings.ToValidUTF8(text[:min(len(text), 16*maxErrorText)], "")
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
	if len(text) > maxErrorText {
		text = strings.ToValidUTF8(text[:maxErrorText], "") + "…"
	}
	return text
}
