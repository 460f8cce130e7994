package tools

import (
	"regexp"
	"strings"
)

// fieldGroups are the protocols whose fields tshark may print: headers and
// signalling, never what users wrote. A field is SAFE when its protocol is
// here and secretField does not match it.
var fieldGroups = wordSet(`frame eth sll sll2 vlan ieee8021ad arp ip ipv6 icmp icmpv6 igmp tcp udp udplite sctp dccp gre vxlan geneve gtp mpls pppoe ppp
 stp rstp mstp lldp cdp lacp slow ospf bgp isis eigrp rip ripng pim vrrp hsrp carp glbp bfd ntp ptp dns mdns llmnr nbns dhcp bootp dhcpv6
 tls ssl dtls quic http2 http3 rtp rtcp esp ah isakmp udpencap wg nvgre ipip sflow cflow erspan macsec eapol wlan wlan_radio radiotap
 tcp.analysis icmp.resp_in mptcp stun dvmrp lisp pfcp diameter.cmd snmp.version col _ws.col _ws.expert _ws.malformed data.len teredo 6lowpan
 x509sat x509ce x509af rpc nfs.procedure smb2.cmd smb2.nt_status smb.cmd kafka.api_key mqtt.msgtype amqp.type redis.type sip.Method sip.Status-Code sip.CSeq
 memcached.opcode mysql.response_code pgsql.type ldap.messageID ldap.resultCode kerberos.msg_type kerberos.error_code radius.code tds.type
 grpc.status_code websocket.opcode ftp.response.code smtp.response.code imap.isrequest pop.response.indicator ssh.protocol ssh.message_code`)

// httpFields of HTTP/1 that carry neither bodies nor credentials.
var httpFields = wordSet(`http.request http.response http.request.method http.request.version http.response.code http.response.code.desc
 http.response.phrase http.response.version http.host http.server http.user_agent http.content_type http.content_length
 http.content_length_header http.content_encoding http.transfer_encoding http.connection http.time http.date http.last_modified http.location
 http.request.uri http.request_in http.response_in http.next_request_in http.prev_request_in http.request_number http.response_number
 http.cache_control http.accept http.accept_encoding http.accept_language http.upgrade http.chat http.chunk_size http.x_forwarded_for http.referer`)

// secretField matches fields that carry payload, credentials or keys.
var secretField = regexp.MustCompile(`(?i)payload|data($|[._])|segment_data|reassembled|passw|passphrase|secret|auth_?(data|key|string|token)|\bauth\b|credential|community|` +
	`cookie|token|authorization|keylog|private|psk|premaster|session_ticket|\.text$|body|raw|md5|digest|simple|username|user_name|` +
	`wlan_rsna_eapol|wlan\.rsn\.ie\.pmkid|eapol\.keydes|ntlmssp|\.arg$|parameter|header\.value|headers\.auth|option\.value|\.bytes$|option_unknown|` +
	`passcode|xauth|wlan\.analysis|gtk|\bpmk\b|(ciphering|integrity|encryption|session|shared|master)_?key|[._]key([._]|$)|snmpstring|authentication$|` +
	`http[23]\.header|http2\.continuation`)

func wordSet(s string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(s) {
		m[w] = true
	}
	return m
}

var fieldShape = match(`^[A-Za-z0-9_.-]{1,80}(#[0-9]{1,3})?$`)

// captureField is one -e field of tshark.
func captureField(v string) bool {
	name, _, _ := strings.Cut(v, "#")
	if !fieldShape(v) {
		return false
	}
	if httpFields[name] || allowedField[name] {
		return true
	}
	if secretField.MatchString(name) {
		return false
	}
	for group := name; group != ""; {
		if fieldGroups[group] {
			return true
		}
		i := strings.LastIndexByte(group, '.')
		if i < 0 {
			return false
		}
		group = group[:i]
	}
	return false
}

// allowedField lists fields that secretField would take for payload.
var allowedField = wordSet(`tcp.len udp.length data.len ip.len tcp.options.sack_le tcp.options.mss_val tcp.options.wscale.shift dhcp.option.value.ip
 tcp.options.timestamp.tsval tcp.options.timestamp.tsecr quic.payload_length tcp.reassembled.length tcp.reassembled_in tls.record.length
 http2.data.length tls.handshake.session_ticket_length dns.txt.length rtp.payload_type rtp.p_type frame.cap_len tcp.hdr_len icmp.data_time
 icmp.data_time_relative`)

// taps are the first parts of tshark's -z statistics that print counts and
// headers only.
var taps = regexp.MustCompile(`^(conv|endpoints|hosts),[a-z0-9_]+$|^(io,(stat|phs))$|^expert$|` +
	`^(dns|http|http_req|http_srv|http_seq|http2|plen|ptype|dests|ip_hosts|ip_srcdst|ip_ttls|ipv6_hosts|ipv6_dests|ipv6_ptype|ipv6_srcdst|dns_qr|dhcp|` +
	`bacapp_ip|collectd|hart_ip|sametime|sctp|lbmr|osmux|isup_msg|gsm_a|rtsp|f1ap|ngap|e2ap|someip_messages|smb2|nfsv4|icmpv6),?(tree|stat|srt|counter)?$|` +
	`^(rpc|icmp|icmpv6|smb|smb2|dcerpc|nfs|ldap|radius|diameter|afp|camel|fc|gtp|h225|mgcp|megaco|scsi|snmp|ncp|sip),(srt|rtd|programs|stat|counter|tree)$|` +
	`^(rtp|sip|sctp|dhcp|bootp|wsp|rlc|mac-lte|rlc-lte|h225|h248|ansi_a|gsm_map|isup_msg),(streams|stat|summary|counter)$|^flow,(any|tcp|icmp|icmpv6),(standard|network)$|^(hosts|addrs)$|^(dests|ptype|plen),tree$`)

// tap is one -z statistic. A filter may follow; nothing that follows may be a
// list of fields to print.
func tap(v string) bool {
	if !filterText(v) || strings.Contains(v, "colinfo") {
		return false
	}
	parts := strings.Split(v, ",")
	for n := min(3, len(parts)); n > 0; n-- {
		if taps.MatchString(strings.Join(parts[:n], ",")) {
			return true
		}
	}
	return false
}

// protocols is the list of -O and -j: layers to print in detail.
func protocols(v string) bool {
	for part := range strings.FieldsFuncSeq(v, func(r rune) bool { return r == ',' || r == ' ' }) {
		if !detailed[part] {
			return false
		}
	}
	return v != ""
}

var detailed = wordSet(`frame eth sll vlan arp ip ipv6 icmp icmpv6 igmp tcp udp sctp gre vxlan geneve mpls stp rstp lldp cdp lacp ospf bgp bfd vrrp dns mdns
 dhcp bootp dhcpv6 ntp tls quic isakmp esp rtcp`)
