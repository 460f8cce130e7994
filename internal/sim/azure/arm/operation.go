package arm

import (
	"fmt"
	"sync"

	"ghostbot/internal/sim/azure/cloud"
)

// operations are what was accepted and goes on: az polls them.
type operations struct {
	mu   sync.Mutex
	next int
	list map[string]*operation
}

type operation struct {
	polls  int // how often it was looked at
	result result
}

// result is what an operation ends with.
type result struct {
	status int // of the address of the result: 200 or 204
	body   any
	err    func() *cloud.Error // looked at when the operation ends; nil: it succeeds
}

// accept begins an operation and answers the request that asked for it.
func (m *Manager) accept(status int, body any, r result) (reply, *cloud.Error) {
	m.ops.mu.Lock()
	m.ops.next++
	id := fmt.Sprintf("00000000-0000-4000-8000-%012x", m.ops.next)
	m.ops.list[id] = &operation{result: r}
	m.ops.mu.Unlock()
	at := "https://" + Host + "/subscriptions/" + m.cloud.Seed().Subscriptions[0].ID + "/providers/Microsoft.Network/locations/westeurope/"
	h := map[string]string{"Azure-AsyncOperation": at + "operations/" + id + "?api-version=" + version}
	if status == 202 {
		h["Location"] = at + "operationResults/" + id + "?api-version=" + version
	}
	if m.opt.RetryAfter != "" {
		h["Retry-After"] = m.opt.RetryAfter
	}
	return reply{status: status, body: body, header: h}, nil
}

// look answers a poll. The operation itself is asked for its state, and always
// says 200; the address of the result says 202 until there is one.
func (o *operations) look(id string, asked bool, opt Options) (reply, *cloud.Error) {
	o.mu.Lock()
	op := o.list[id]
	if op == nil {
		o.mu.Unlock()
		return reply{}, &cloud.Error{Status: 404, Code: "OperationNotFound", Message: "The operation " + id + " was not found."}
	}
	done := op.polls >= opt.Polls
	op.polls++
	o.mu.Unlock()
	h := map[string]string{}
	if opt.RetryAfter != "" && !done {
		h["Retry-After"] = opt.RetryAfter
	}
	var failed *cloud.Error
	if done && op.result.err != nil {
		failed = op.result.err()
	}
	switch {
	case asked && !done:
		return reply{status: 202, header: h}, nil
	case asked && failed != nil:
		return reply{}, failed
	case asked:
		return reply{status: op.result.status, body: op.result.body}, nil
	case !done:
		return reply{status: 200, body: cloud.Object{"status": "InProgress"}, header: h}, nil
	case failed != nil:
		return reply{status: 200, body: cloud.Object{"status": "Failed", "error": cloud.Object{"code": failed.Code, "message": failed.Message, "details": []any{}}}}, nil
	}
	return reply{status: 200, body: cloud.Object{"status": "Succeeded"}}, nil
}
