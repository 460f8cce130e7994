// Bolt, connected and idle for IDLE_MS beside whoever else is. Prints "idle ok" at the end.
import bolt from '@slack/bolt';
import { SLACK_API_URL, SLACK_APP_TOKEN, SLACK_BOT_TOKEN, idle, limit, within } from './lab.mjs';

const ms = Number(process.env.IDLE_MS);
limit(ms + 60_000);
const app = new bolt.App({ token: SLACK_BOT_TOKEN, appToken: SLACK_APP_TOKEN, socketMode: true, clientOptions: { slackApiUrl: SLACK_API_URL } });
await within(10_000, 'start', app.start());
await idle(ms);
await app.stop();
console.log('idle ok');
process.exit(0);
