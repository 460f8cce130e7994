// The least that a Bolt app can do: acknowledge. What another app is measured beside.
import bolt from '@slack/bolt';

const { SLACK_APP_TOKEN, SLACK_BOT_TOKEN, SLACK_API_URL } = process.env;
const app = new bolt.App({ token: SLACK_BOT_TOKEN, appToken: SLACK_APP_TOKEN, socketMode: true, logLevel: 'error', clientOptions: { slackApiUrl: SLACK_API_URL } });
app.command(/.*/, async ({ ack }) => { await ack({ text: 'acknowledged' }); });
app.action(/.*/, async ({ ack }) => { await ack(); });
app.view(/.*/, async ({ ack }) => { await ack(); });
await app.start();
console.log('connected');
process.stdin.resume();
process.stdin.on('end', async () => { await app.stop(); process.exit(0); });
