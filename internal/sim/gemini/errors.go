package gemini

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// apiError is a google.rpc.Status as the API writes it.
type apiError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Status  string `json:"status"`
	Details []any  `json:"details,omitempty"`
}

func invalid(err error) apiError {
	return apiError{Code: 400, Status: "INVALID_ARGUMENT", Message: err.Error()}
}

// statusOf is the name that goes with a code.
func statusOf(code int) string {
	switch code {
	case 400:
		return "INVALID_ARGUMENT"
	case 401:
		return "UNAUTHENTICATED"
	case 403:
		return "PERMISSION_DENIED"
	case 404:
		return "NOT_FOUND"
	case 429:
		return "RESOURCE_EXHAUSTED"
	case 503:
		return "UNAVAILABLE"
	case 504:
		return "DEADLINE_EXCEEDED"
	}
	return "INTERNAL"
}

func writeError(w http.ResponseWriter, e apiError) { writeJSON(w, e.Code, map[string]any{"error": e}) }

func writeJSON(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.WriteHeader(code)
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.Encode(v)
}

func readAll(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	return io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
}

// admit refuses keys and models that the script does not know, as the API does.
func (s script) admit(r *http.Request, model, method string) (apiError, bool) {
	key := r.Header.Get("x-goog-api-key")
	if key == "" {
		key = r.URL.Query().Get("key")
	}
	switch {
	case key == "":
		return apiError{Code: 403, Status: "PERMISSION_DENIED", Message: "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or other form of API consumer identity to call this API."}, true
	case s.key != "" && key != s.key:
		return apiError{Code: 400, Status: "INVALID_ARGUMENT", Message: "API key not valid. Please pass a valid API key.", Details: []any{
			map[string]any{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID", "domain": "googleapis.com", "metadata": map[string]any{"service": "generativelanguage.googleapis.com"}},
		}}, true
	case !s.exists(model):
		return apiError{Code: 404, Status: "NOT_FOUND", Message: "models/" + model + " is not found for API version v1beta, or is not supported for " + method + ". Call ListModels to see the list of available models and their supported methods."}, true
	}
	return apiError{}, false
}

func (s script) exists(model string) bool {
	for _, m := range s.models {
		if m == model {
			return true
		}
	}
	return len(s.models) == 0 && strings.Contains(model, "gemini")
}

// play answers with the fault.
func (f *fault) play(w http.ResponseWriter, r *http.Request) {
	switch f.kind {
	case "html":
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(f.status)
		io.WriteString(w, "<!doctype html><html><head><title>Sign in</title></head><body>The proxy wants you to sign in.</body></html>")
		return
	case "reset", "cut":
		f.hangUp(w)
		return
	case "hang":
		<-r.Context().Done()
		return
	}
	e := apiError{Code: f.status, Status: statusOf(f.status), Message: f.message}
	if f.retry != "" {
		e.Details = append(e.Details, map[string]any{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f.retry})
	}
	if f.daily {
		e.Details = append(e.Details, map[string]any{"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": []any{
			map[string]any{"quotaMetric": "generativelanguage.googleapis.com/generate_content_free_tier_requests", "quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"},
		}})
	}
	if f.after > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(f.after))
	}
	writeError(w, e)
}

// hangUp ends the connection without an answer, or after half of one.
func (f *fault) hangUp(w http.ResponseWriter) {
	if f.kind == "cut" {
		w.Header().Set("Content-Type", "application/json; charset=UTF-8")
		w.Header().Set("Content-Length", "1000")
		io.WriteString(w, `{"candidates": [{"content": {"parts": [{"te`)
	}
	panic(http.ErrAbortHandler)
}
