// How text becomes page: mrkdwn, Markdown and plain text, hostile ones included. Expectations were
// written from Slack's formatting rules. Prints "render ok" at the end.
import assert from 'node:assert/strict';
import { start, open } from './person.mjs';

const browser = await start(60_000);
const { page } = await open(browser, process.env.LAB_URL, { timezoneId: 'UTC', locale: 'en-GB' });

// render gives the simplified HTML of each input: tags without attributes, except addresses and
// the class of mentions.
const render = (how, inputs) => page.evaluate(async ([how, inputs]) => {
  const t = await import('/text.js');
  return inputs.map(input => {
    const box = document.createElement('div');
    t.add(box, t[how](input));
    box.querySelectorAll('.code-tools').forEach(x => x.remove());
    const walk = n => {
      if (n.nodeType === 3) return n.data;
      const inner = [...n.childNodes].map(walk).join('');
      const tag = n.tagName.toLowerCase();
      if (n.classList.contains('mention')) return `[${inner}]`;
      if (tag === 'span' || tag === 'div' || tag === 'time') return inner;
      if (tag === 'br') return '⏎';
      if (tag === 'a') return `<a ${n.getAttribute('href')}>${inner}</a>`;
      return `<${tag}>${inner}</${tag}>`;
    };
    return [...box.childNodes].map(walk).join('');
  });
}, [how, inputs]);

const check = async (how, table) => {
  const got = await render(how, table.map(r => r[0]));
  const wrong = table.flatMap(([input, want], i) => got[i] === want ? [] : [{ how, input, got: got[i], want }]);
  assert.deepEqual(wrong, []);
  console.log('step', how, table.length);
};

await check('mrkdwn', [
  ['plain', 'plain'],
  ['', ''],
  ['*bold* and _italic_ and ~gone~', '<b>bold</b> and <i>italic</i> and <s>gone</s>'],
  ['*_both_*', '<b><i>both</i></b>'],
  ['2*3*4 snake_case_name a~b~c', '2*3*4 snake_case_name a~b~c'],
  ['* not bold *', '* not bold *'],
  ['*open', '*open'],
  ['*one\ntwo*', '*one⏎two*'],
  ['`code *not bold*`', '<code>code *not bold*</code>'],
  ['```\nblock\n  _kept_\n```', '<pre>block⏎  _kept_</pre>'.replace('⏎', '⏎')],
  ['a ```open', 'a ```open'],
  ['a\nb', 'a⏎b'],
  ['> quoted\nplain', '<blockquote>quoted</blockquote>plain'],
  ['&gt; quoted', '<blockquote>quoted</blockquote>'],
  ['a &lt;b&gt; &amp; c', 'a <b> & c'],
  ['&amp;lt;', '&lt;'],
  ['<@U0COMMAND1>', '[@commander]'],
  ['<@U0COMMAND1|other name>', '[@commander]'],
  ['<@U404>', '[@U404]'],
  ['<!channel> <!here>', '[@channel] [@here]'],
  ['<!subteam^S0NETOPS01>', '[@netops-oncall]'],
  ['<#C0LAB00002>', '[#network]'],
  ['`<!channel>`', '<code>[@channel]</code>'],
  ['&lt;!channel&gt;', '<!channel>'],
  ['<https://example.com|a label>', '<a https://example.com>a label</a>'],
  ['<https://example.com?a=1&amp;b=2>', '<a https://example.com?a=1&b=2>https://example.com?a=1&b=2</a>'],
  ['see https://example.com/x.', 'see <a https://example.com/x>https://example.com/x</a>.'],
  ['<javascript:alert(1)|click>', '<javascript:alert(1)|click>'],
  ['<data:text/html,x|click>', '<data:text/html,x|click>'],
  ['<!date^43200^{date_num} {time}|then>', '1970-01-01 12:00'],
  ['<!date^nonsense^{time}|then>', 'then'],
  ['<!date^0^{unknown}|then>', '{unknown}'],
  ['<script>alert(1)</script>', '<script>alert(1)</script>'],
  ['<img src=x onerror=alert(1)>', '<img src=x onerror=alert(1)>'],
  [':ghost: :no_such_emoji: 10:30:45', '👻 :no_such_emoji: 10:30:45'],
  ['\u202edrowssap', '\u202edrowssap'],
]);

await check('plain', [
  ['*not bold* <@U0COMMAND1>', '*not bold* <@U0COMMAND1>'],
  ['a &lt; b :ghost:', 'a < b 👻'],
  ['one\ntwo', 'one⏎two'],
]);

await check('markdown', [
  ['# Title\ntext', '<h3>Title</h3><p>text</p>'],
  ['**bold** *italic* ~~gone~~ `code`', '<p><b>bold</b> <i>italic</i> <s>gone</s> <code>code</code></p>'],
  ['__bold__ _italic_ snake_case_name', '<p><b>bold</b> <i>italic</i> snake_case_name</p>'],
  ['- a\n- b\n  - c', '<ul><li>a</li><li>b<ul><li>c</li></ul></li></ul>'],
  ['1. a\n2. b', '<ol><li>a</li><li>b</li></ol>'],
  ['- a\n  more\n\n- b', '<ul><li>a\nmore</li><li>b</li></ul>'],
  ['> quoted\n> more', '<blockquote><p>quoted\nmore</p></blockquote>'],
  ['```\n<b>&amp;\n```', '<pre><b>&amp;</pre>'],
  ['---', '<hr></hr>'],
  ['| a | b |\n|---|:-:|\n| 1 | `x\\|y` |', '<table><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td>1</td><td><code>x|y</code></td></tr></tbody></table>'],
  ['[label](https://example.com)', '<p><a https://example.com>label</a></p>'],
  ['[label](javascript:alert(1))', '<p>label)</p>'],
  ['![picture](https://example.com/x.png)', '<p><a https://example.com/x.png>picture</a></p>'],
  ['<!channel> and <b>html</b>', '<p>[@channel] and <b>html</b></p>'],
  ['a \\*kept\\* b', '<p>a *kept* b</p>'],
  ['one\n\ntwo', '<p>one</p><p>two</p>'],
]);

// A large hostile text must not hang the page.
const began = Date.now();
await render('mrkdwn', ['*'.repeat(20000), '<'.repeat(20000), '`'.repeat(20000), '_a'.repeat(10000), ('👻' + '\u202e').repeat(5000)]);
await render('markdown', ['*'.repeat(5000), '['.repeat(5000), '|'.repeat(5000) + '\n|-|', '> '.repeat(500) + 'x', '- '.repeat(500)]);
assert.ok(Date.now() - began < 8000, 'took ' + (Date.now() - began) + ' ms');
console.log('step hostile');

await browser.close();
console.log('render ok');
process.exit(0);
