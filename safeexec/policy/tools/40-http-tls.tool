# HTTP and TLS probes.

tool curl
  style curl
  safe    GET and HEAD requests over http and https, the answer to stdout or nowhere
  --url                 url
  -X --request          enum(GET|HEAD)
  -o --output           enum(/dev/null|-)
  -D --dump-header      enum(-|/dev/null)
  --stderr              enum(-|/dev/null)
  -w --write-out        curlform
  -m --max-time         sec(0.1..300)
  --connect-timeout     sec(0.1..120)
  --retry               int(0..5)
  --retry-delay --retry-max-time sec(0..60)
  --max-redirs          int(0..10)
  --max-filesize        re([0-9]{1,9}[kKmM]?)
  -y --speed-time -Y --speed-limit int(1..100000000)
  --limit-rate          re([0-9]{4,9}|[0-9]{1,6}[kKmMgG])
  -r --range            re([0-9,-]{1,60})
  -H --header           header
  -A --user-agent       re([A-Za-z0-9(][A-Za-z0-9_./;:,\x20()+-]{0,200})
  -e --referer          url
  --resolve             resolve
  --connect-to          connect
  --interface           re((if!|host!)?[A-Za-z0-9_.:-]{1,60})
  --local-port          re([0-9]{1,5}(-[0-9]{1,5})?)
  --noproxy             re([A-Za-z0-9_.,*:/-]{1,400})
  --cacert --capath     castore
  --tls-max             enum(1.0|1.1|1.2|1.3|default)
  --ciphers --tls13-ciphers --curves re([A-Za-z0-9_:!@=+.-]{1,400})
  --proto --proto-redir re(=?https?(,https?)?)
  --proto-default       enum(http|https)
  --keepalive-time      int(1..300)
  --happy-eyeballs-timeout-ms int(1..10000)
  --expect100-timeout   sec(0..30)
  --dns-interface       iface
  -s -S -v -i -I -k -4 -6 -g -q -f -L -0 -1 -2 -3
  -#
  --silent --show-error --verbose --include --head --insecure --ipv4 --ipv6 --globoff --disable --fail --fail-with-body --location
  --http0.9 --http1.0 --http1.1 --http2 --http2-prior-knowledge --http3 --http3-only --no-alpn --alpn --no-npn
  --tlsv1 --tlsv1.0 --tlsv1.1 --tlsv1.2 --tlsv1.3 --sslv2 --sslv3 --cert-status --compressed --path-as-is --raw --progress-bar --no-progress-meter
  --no-keepalive --no-sessionid --tcp-nodelay --tcp-fastopen --retry-connrefused --retry-all-errors --show-headers
  --ca-native --styled-output --no-styled-output --suppress-connect-headers --version --help -V -h --fail-early --ssl-no-revoke --trace-time --disallow-username-in-url
  no -d --data --data-raw --data-binary --data-ascii --data-urlencode --json -F --form --form-string --url-query : sends data; only GET and HEAD run without a person
  no -T --upload-file --append -a : sends a file
  no -O --remote-name -J --remote-header-name --remote-name-all --output-dir --create-dirs --remove-on-error : writes a file
  no -K --config : reads options from a file
  no -u --user -n --netrc --netrc-file --netrc-optional --oauth2-bearer --aws-sigv4 --anyauth --basic --digest --ntlm --negotiate --delegation --login-options : sends a credential
  no -E --cert --key --pass --cert-type --key-type --engine --tlsuser --tlspassword --proxy-cert --proxy-key : uses a private key or a credential
  no -b --cookie -c --cookie-jar : sends or stores cookies
  no -x --proxy --preproxy --socks4 --socks4a --socks5 --socks5-hostname -U --proxy-user --proxy-header --proxytunnel -p : sends the request through another host
  no --unix-socket --abstract-unix-socket : talks to a local service
  no --dns-servers --doh-url --doh-insecure --dns-ipv4-addr --dns-ipv6-addr : asks another DNS server
  no --trace --trace-ascii --libcurl --hsts --alt-svc --etag-save --etag-compare --ssl-sessions --egd-file --random-file : reads or writes a file
  no --crlfile --pinnedpubkey : reads a file
  no -N --no-buffer : is used for endless streams
  no --next -: -Z --parallel --parallel-max : starts further requests with other options
  no --location-trusted : sends credentials to wherever it is redirected
  no --request-target --variable --expand-url --expand-output --expand-data : builds other requests
  no -G --get : builds a query from data
  no -z --time-cond -R --remote-time -C --continue-at : reads or changes a file
  with -L --max-redirs : follows up to 50 redirects; add --max-redirs 3
  with --location --max-redirs : follows up to 50 redirects; add --max-redirs 3
  args url? url? url? url?

block tls-flags
  -4 -6 -brief -showcerts -status -prexit -crlf -tlsextdebug -no_ticket -reconnect -noservername -verify_return_error -verify_quiet -no_ign_eof -nocommands
  -state -no-CAfile -no-CApath -no-CAstore -crl_check -crl_check_all -x509_strict -partial_chain -trusted_first -policy_check
  -tls1 -tls1_1 -tls1_2 -tls1_3 -no_tls1 -no_tls1_1 -no_tls1_2 -no_tls1_3 -ssl3 -no_ssl3 -dtls -dtls1 -dtls1_2 -bugs -comp -no_comp -legacy_renegotiation -legacy_server_connect
  -no_legacy_server_connect -serverpref -fallback_scsv -no_renegotiation -nbio -async -allow_no_dhe_kex -help -issuer_checks -ct -noct -security_debug
  -servername           host
  -verify -verify_depth int(0..20)
  -verify_hostname      host
  -verify_ip            ip
  -verify_name -purpose re([a-z_]{1,20})
  -cipher -ciphersuites -sigalgs -client_sigalgs -curves -groups -named_curve re([A-Za-z0-9_:!@=+.,-]{1,400})
  -alpn -nextprotoneg   re([a-z0-9/.,-]{1,80})
  -min_protocol -max_protocol re((TLS|DTLS)v1(\.[0-3])?|None)
  -CAfile -CApath -CAstore certstore
  -maxfraglen -max_send_frag -split_send_frag -max_pipelines -read_buf number
  -nameopt              re([a-z0-9_,+-]{1,120})
  -serverinfo           re([0-9,]{1,40})
  -bind                 hostport
  -starttls             enum(smtp|pop3|imap|ftp|xmpp|xmpp-server|telnet|irc|mysql|postgres|lmtp|nntp|sieve|ldap)
  -xmpphost -name       host

tool openssl
  style dash
  safe    TLS handshakes without a client key, and certificates printed
  sub s_client
    use tls-flags
    -connect            hostport
    -host               host
    -port               int(1..65535)
    no -cert -key -pass -certform -keyform -cert_chain -build_chain -xcert -xkey -psk -psk_identity -psk_session -srpuser -srppass : uses a private key or a credential
    no -sess_out -sess_in -keylogfile -writerand -rand -msgfile -ssl_client_engine -engine -early_data -ctlogfile -CRL -dane_tlsa_rrdata : reads or writes a file
    no -proxy -proxy_user -proxy_pass -unix : goes through another host or a local service
    no -quiet -ign_eof : waits until the server closes
    no -msg -debug -trace -nbio_test : dumps the traffic
    check s-client
    args hostport?
  sub x509
    -noout -text -dates -startdate -enddate -subject -issuer -fingerprint -serial -hash -subject_hash -issuer_hash -email -ocsp_uri -ocspid -purpose -pubkey -modulus
    -sha1 -sha256 -sha384 -sha512 -md5 -alias -help -C -issuer_hash_old -subject_hash_old
    -in                 cert
    -inform             enum(PEM|DER|pem|der)
    -checkend           number
    -checkhost          host
    -checkemail         word
    -checkip            ip
    -ext                re([A-Za-z0-9,]{1,120})
    -nameopt -certopt -dateopt re([a-z0-9_,+-]{1,120})
    no -out -signkey -key -CA -CAkey -CAcreateserial -CAserial -set_serial -req -x509toreq -force_pubkey -addtrust -addreject -setalias -passin -writerand : signs or writes
    need -in -help : needs -in with a certificate file
  sub verify
    -verbose -show_chain -partial_chain -trusted_first -crl_check -crl_check_all -x509_strict -no-CAfile -no-CApath -allow_proxy_certs -help -policy_check
    -CAfile -CApath -untrusted -trusted certstore
    -purpose            re([a-z_]{1,20})
    -verify_hostname    host
    -verify_ip          ip
    -verify_depth       int(0..20)
    -nameopt            re([a-z0-9_,+-]{1,120})
    -attime             number
    args cert+
  sub crl
    -noout -text -issuer -lastupdate -nextupdate -hash -fingerprint -crlnumber -help
    -in                 re([A-Za-z0-9_./-]{1,200}\.(crl|pem))
    -inform             enum(PEM|DER|pem|der)
    -nameopt            re([a-z0-9_,+-]{1,120})
    need -in -help : needs -in
  sub req
    -noout -text -subject -verify -pubkey -help
    -in                 re([A-Za-z0-9_/-][A-Za-z0-9_./-]{0,200}\.(csr|req))
    -inform             enum(PEM|DER|pem|der)
    need -in -help : needs -in
  sub ciphers
    -v -V -s -stdname -tls1 -tls1_1 -tls1_2 -tls1_3 -ssl3 -psk -srp -help
    -convert            word
    -ciphersuites       re([A-Za-z0-9_:!@=+.,-]{1,400})
    args re([A-Za-z0-9_:!@=+.,-]{1,400})?
  sub version
    -a -v -b -o -f -p -d -e -m -r -c -help
  deny rsa pkey ec dsa pkcs12 pkcs8 pkcs7 genrsa genpkey gendsa enc dgst rand s_server s_time ocsp ca cms smime ts speed engine passwd ecparam dhparam asn1parse pkeyutl rsautl storeutl nseq spkac srp tsget rehash prime kdf mac fipsinstall info list errstr : handles keys or files, or makes load
