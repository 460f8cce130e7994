package symptom_test

import (
	"strings"
	"testing"

	"ghostbot/agent/playbook/symptom"
)

// pasted are logs, traces and messages of programs, with what they are about.
var pasted = []struct{ text, want string }{
	{"java.net.ConnectException: Connection refused\n\tat java.base/sun.nio.ch.Net.pollConnect(Native Method)\n\tat com.acme.Orders.call(Orders.java:42)\n\tat org.springframework.web.client.RestTemplate.doExecute(RestTemplate.java:776)\nCaused by: I/O error on POST request for \"http://localhost:8080/orders\": Connection refused", "http://localhost:8080/orders"},
	{"Error: read ECONNRESET\n    at TCP.onStreamRead (node:internal/stream_base_commons:217:20) { code: 'ECONNRESET' } http://127.0.0.1:18080/api", "http://127.0.0.1:18080/api"},
	{"TypeError: fetch failed\n    at node:internal/deps/undici/undici:12618:11\n    at async main (file:///app/index.mjs:3:13) {\n  cause: Error: connect ECONNREFUSED 127.0.0.1:18080\n      at TCPConnectWrap.afterConnect [as oncomplete] (node:net:1555:16)", "http://127.0.0.1:18080/"},
	{"Traceback (most recent call last):\n  File \"/app/client.py\", line 88, in get\n  File \"/usr/lib/python3.11/http/client.py\", line 1283, in request\nConnectionRefusedError: [Errno 111] Connection refused\nduring: requests.get('http://127.0.0.1:18080/v1/items')", "http://127.0.0.1:18080/v1/items"},
	{"System.Net.Http.HttpRequestException: Connection refused (127.0.0.1:18080)\n   at System.Net.Http.HttpConnectionPool.ConnectToTcpHostAsync(String host, Int32 port)\n   at Acme.Shop.Checkout.PayAsync(Cart cart) in /src/Checkout.cs:line 42", "http://127.0.0.1:18080/"},
	{"thread 'main' panicked at src/main.rs:23:10:\ncalled `Result::unwrap()` on an `Err` value: reqwest::Error { kind: Request, url: \"http://127.0.0.1:18080/\", source: hyper_util::client::legacy::Error(Connect, ConnectError(\"tcp connect error\", 127.0.0.1:18080, Os { code: 111, kind: ConnectionRefused, message: \"Connection refused\" })) }", "http://127.0.0.1:18080/"},
	{"panic: dial tcp 127.0.0.1:18080: connect: connection refused\n\ngoroutine 1 [running]:\nmain.main()\n\t/app/main.go:23 +0x1d\nexit status 2", "http://127.0.0.1:18080/"},
	{"app/models/order.rb:42:in `charge': Errno::ECONNREFUSED: Failed to open TCP connection to 127.0.0.1:18080 (Connection refused - connect(2) for \"127.0.0.1\" port 18080)", "http://127.0.0.1:18080/"},
	{"PHP Fatal error:  Uncaught GuzzleHttp\\Exception\\ConnectException: cURL error 7: Failed to connect to 127.0.0.1 port 18080 (see https://curl.haxx.se/libcurl/c/libcurl-errors.html) in /var/www/vendor/guzzlehttp/guzzle/src/Handler/CurlFactory.php:210", "http://127.0.0.1:18080/"},
	{"[2026-03-14T10:41:02.123Z] \"GET /cart HTTP/1.1\" 503 UF,URX \"-\" \"upstream_reset_before_response_started{connection_failure}\" - \"-\" 0 91 0 - \"10.1.2.3\" \"curl/8\" \"x\" \"shop.example.com\" \"127.0.0.1:18080\"", "http://127.0.0.1:18080/cart"},
	{"10.1.2.3 - - [14/Mar/2026:10:41:02 +0000] \"GET /cart HTTP/1.1\" 502 157 \"-\" \"curl/8.5.0\" upstream 127.0.0.1:18080", "http://127.0.0.1:18080/cart"},
	{"Warning  Unhealthy  12s (x4 over 42s)  kubelet  Liveness probe failed: Get \"http://127.0.0.1:18080/healthz\": context deadline exceeded (Client.Timeout exceeded while awaiting headers)", "http://127.0.0.1:18080/healthz"},
	{"Warning  BackOff  2m (x9 over 5m)  kubelet  Back-off restarting failed container web in pod web-7c9f_default(0a1b2c3d-1111-2222-3333-444455556666); 127.0.0.1:18080 is dead", "http://127.0.0.1:18080/"},
	{"Error: UPGRADE FAILED: cannot patch \"web\": Post \"https://127.0.0.1:6443/api/v1/namespaces/default/services\": dial tcp 127.0.0.1:6443: connect: connection refused", "https://127.0.0.1:6443/api/v1/namespaces/default/services"},
	{"The connection to the server 127.0.0.1:6443 was refused - did you specify the right host or port?", "https://127.0.0.1:6443/"},
	{"dial unix /var/run/docker.sock: connect: permission denied, and 127.0.0.1:2375 is refused", "http://127.0.0.1:2375/"},
	{"checkout-db-1  | 2026-03-14 10:41:02.123 UTC [1] LOG:  listening on IPv4 address \"127.0.0.1\", port 5432\ncheckout-app-1 | connect ETIMEDOUT 127.0.0.1:5432", "127.0.0.1:5432"},
	{"Mar 14 10:41:02 web1 systemd[1]: checkout.service: Start request repeated too quickly.\nMar 14 10:41:02 web1 systemd[1]: Failed to start checkout.service - Checkout API on 127.0.0.1:18080.", "http://127.0.0.1:18080/"},
	{"Job for nginx.service failed because the control process exited with error code. nginx: [emerg] bind() to 127.0.0.1:18080 failed (98: Address already in use)", "http://127.0.0.1:18080/"},
	{"[error] 31#31: *7 upstream timed out (110: Connection timed out) while reading response header from upstream, client: 10.1.2.3, server: _, request: \"POST /pay HTTP/1.1\", upstream: \"http://127.0.0.1:18080/pay\", host: \"shop.example.com\"", "http://127.0.0.1:18080/pay"},
	{"AH01114: HTTP: failed to make connection to backend: 127.0.0.1, [proxy:error] (111)Connection refused: AH00957: HTTP: attempt to connect to 127.0.0.1:18080 (127.0.0.1) failed", "http://127.0.0.1:18080/"},
	{"level=ERROR source=client.go:131 msg=\"rpc failed\" peer=[::1]:50051 code=Unavailable", "http://[::1]:50051/"},
	{"{\"time\":\"2026-03-14T10:41:02Z\",\"severity\":\"ERROR\",\"httpRequest\":{\"requestUrl\":\"http://127.0.0.1:18080/pay\",\"status\":502,\"remoteIp\":\"10.1.2.3\"}}", "http://127.0.0.1:18080/pay"},
	{"E0314 10:41:02.123456   12345 reflector.go:147] k8s.io/client-go/informers/factory.go:150: Failed to watch *v1.Pod: Get \"https://127.0.0.1:6443/api/v1/pods\": net/http: TLS handshake timeout", "https://127.0.0.1:6443/api/v1/pods"},
	{"com.zaxxer.hikari.pool.HikariPool - HikariPool-1 - Connection is not available, request timed out after 30000ms. org.postgresql.util.PSQLException: Connection to 127.0.0.1:5432 refused.", "127.0.0.1:5432"},
	{"io.lettuce.core.RedisConnectionException: Unable to connect to 127.0.0.1/<unresolved>:6379", "127.0.0.1:6379"},
	{"FATAL ERROR: server refused connection at 127.0.0.1:18080 after 3 retries (v1.2.3, build 2026.03.14)", "http://127.0.0.1:18080/"},
	{"prometheus: Get \"http://127.0.0.1:9100/metrics\": EOF; job=node instance=127.0.0.1:9100", "http://127.0.0.1:9100/metrics"},
	{"openssl: 140735:error:0A000086:SSL routines:tls_post_process_server_certificate:certificate verify failed:ssl/statem/statem_clnt.c:1889: at 127.0.0.1:18443", "https://127.0.0.1:18443/"},
	{"wget: server returned error: HTTP/1.1 503 Service Unavailable (http://127.0.0.1:18080/)", "http://127.0.0.1:18080/"},
	{"Exception in thread \"main\" java.net.UnknownHostException: pay.shop.test: Name or service not known\n\tat java.base/java.net.Inet6AddressImpl.lookupAllHostAddr(Native Method)", "name:pay.shop.test"},
	{"requests.exceptions.ConnectionError: HTTPSConnectionPool(host='api.shop.test', port=443): Max retries exceeded with url: /v1 (Caused by NameResolutionError(\"<urllib3.connection.HTTPSConnection object at 0x7f>: Failed to resolve 'api.shop.test' ([Errno -2] Name or service not known)\"))", "name:api.shop.test"},
}

func TestPasted(t *testing.T) {
	for _, w := range pasted {
		s := short(symptom.Parse(w.text))
		got := s.Targets
		if s.Resolver != "" {
			got = strings.TrimSpace(got + " @" + s.Resolver)
		}
		if got != w.want {
			t.Errorf("%q\n got %s\nwant %s", w.text, got, w.want)
		}
	}
}
